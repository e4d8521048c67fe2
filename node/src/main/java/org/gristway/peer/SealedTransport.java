package org.gristway.peer;

import java.io.DataInput;
import java.util.Arrays;
import java.util.function.BiConsumer;
import org.jgroups.Address;
import org.jgroups.protocols.TCP;

/**
 * The transport of a {@link Meeting}. Every message ends with a proof that whoever sends it knows
 * the job's secret; one that does not is refused, and its connection closed, before anything of it
 * is looked at. JGroups itself believes every length and type that it reads.
 */
final class SealedTransport extends TCP {

  private static final String ROLE = "meeting";

  private final JobSecret secret;
  private final int mostBytes;
  private final BiConsumer<Address, String> refused;

  /**
   * Makes it, to listen nowhere yet.
   *
   * @param mostBytes that a message may have
   * @param refused told who is refused, by its own account, and why
   */
  SealedTransport(JobSecret secret, int mostBytes, BiConsumer<Address, String> refused) {
    this.secret = secret;
    this.mostBytes = mostBytes;
    this.refused = refused;
  }

  @Override
  public void send(Address to, byte[] data, int offset, int length) throws Exception {
    byte[] said = Arrays.copyOfRange(data, offset, offset + length);
    byte[] sealed = Arrays.copyOf(said, length + JobSecret.PROOF_BYTES);
    System.arraycopy(secret.proof(ROLE, said), 0, sealed, length, JobSecret.PROOF_BYTES);
    super.send(to, sealed, 0, sealed.length);
  }

  @Override
  public void receive(Address from, DataInput in, int length) throws Exception {
    if (length < JobSecret.PROOF_BYTES || length > mostBytes) {
      throw refusal(from, "it says something of " + length + " bytes");
    }
    byte[] sealed = new byte[length];
    in.readFully(sealed);
    byte[] said = Arrays.copyOf(sealed, length - JobSecret.PROOF_BYTES);
    byte[] seal = Arrays.copyOfRange(sealed, said.length, length);
    if (!JobSecret.isSame(seal, secret.proof(ROLE, said))) {
      throw refusal(from, "it does not know the job's secret");
    }
    super.receive(from, said, 0, said.length);
  }

  /** Ends the connection when it is thrown. */
  private Greeting.Stranger refusal(Address from, String why) {
    refused.accept(from, why);
    return new Greeting.Stranger(why);
  }
}
