package org.gristway.peer;

import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.gristway.Failure;

/**
 * What all nodes of a job know and nobody else: who proves to know it is one of them. It is handed
 * on in the environment, is never sent, and appears in no message.
 */
public final class JobSecret {

  /** Enough for a secret that was made, and too much for one that was thought up. */
  private static final int FEWEST_CHARACTERS = 16;

  /** The length of a proof. */
  static final int PROOF_BYTES = 32;

  private static final String ALGORITHM = "HmacSHA256";

  private final SecretKeySpec key;

  private JobSecret(SecretKeySpec key) {
    this.key = key;
  }

  public static JobSecret of(String text) {
    if (text.length() < FEWEST_CHARACTERS) {
      throw Failure.wrongCall(
          "the job's secret is too short to be one: give %d characters or more, such as 'openssl"
              + " rand -hex 16' prints",
          FEWEST_CHARACTERS);
    }
    return new JobSecret(new SecretKeySpec(text.getBytes(StandardCharsets.UTF_8), ALGORITHM));
  }

  /**
   * A proof of knowing the secret.
   *
   * @param role of whoever gives it, so that none can be given back
   * @param said by both sides before
   */
  byte[] proof(String role, byte[]... said) {
    try {
      Mac mac = Mac.getInstance(ALGORITHM);
      mac.init(key);
      mac.update(role.getBytes(StandardCharsets.UTF_8));
      for (byte[] part : said) {
        mac.update((byte) 0);
        mac.update(part);
      }
      return mac.doFinal();
    } catch (GeneralSecurityException missing) {
      throw new IllegalStateException(missing); // every JDK has it
    }
  }

  /** True if a proof is the one that was due; takes as long whatever is wrong about it. */
  static boolean isSame(byte[] proof, byte[] due) {
    return MessageDigest.isEqual(proof, due);
  }

  @Override
  public String toString() {
    return "(a secret)";
  }
}
