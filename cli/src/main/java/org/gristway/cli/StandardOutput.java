package org.gristway.cli;

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;

/**
 * Standard output that says when it fails. {@code System.out} swallows errors: a listing into a
 * closed pipe would run to its end for nobody, and a full disk would look like success.
 */
final class StandardOutput extends OutputStream {

  private final OutputStream file = new FileOutputStream(FileDescriptor.out);

  @Override
  public void write(int value) throws IOException {
    write(new byte[] {(byte) value}, 0, 1);
  }

  @Override
  public void write(byte[] bytes, int offset, int length) throws IOException {
    try {
      file.write(bytes, offset, length);
    } catch (IOException failed) {
      throw new OutputException(failed);
    }
  }
}
