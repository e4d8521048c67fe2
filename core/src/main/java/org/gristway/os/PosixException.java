package org.gristway.os;

import java.io.IOException;

/** A native call that failed, with the error's number and its usual words. */
public final class PosixException extends IOException {

  public static final int ENOENT = 2;
  public static final int EWOULDBLOCK = 11;
  public static final int EISDIR = 21;
  public static final int EINVAL = 22;
  public static final int ENFILE = 23;
  public static final int EMFILE = 24;
  public static final int ENAMETOOLONG = 36;
  public static final int ELOOP = 40;
  public static final int EOPNOTSUPP = 95;

  private final int number;

  PosixException(int number) {
    super(words(number));
    this.number = number;
  }

  /** The system's errno. */
  public int number() {
    return number;
  }

  // The same numbers on x86-64 and ARM64; the words are the C library's.
  private static String words(int number) {
    return switch (number) {
      case 1 -> "Operation not permitted";
      case ENOENT -> "no such file or folder";
      case 5 -> "Input/output error";
      case 6 -> "No such device or address";
      case 12 -> "Cannot allocate memory";
      case 13 -> "permission denied";
      case 16 -> "Device or resource busy";
      case 17 -> "File exists";
      case 18 -> "on another file system";
      case 20 -> "Not a directory";
      case EISDIR -> "Is a directory";
      case EINVAL -> "Invalid argument";
      case ENFILE -> "Too many open files on this machine; raise 'fs.file-max'";
      case EMFILE -> "Too many open files; raise 'ulimit -n'";
      case 27 -> "File too large";
      case 28 -> "No space left on device";
      case 30 -> "Read-only file system";
      case ENAMETOOLONG -> "File name too long";
      case 38 -> "Function not implemented by this file system";
      case 39 -> "Directory not empty";
      case ELOOP -> "a loop of links";
      case EOPNOTSUPP -> "Operation not supported";
      case 116 -> "Stale file handle";
      case 122 -> "Disk quota exceeded";
      default -> "system error " + number;
    };
  }
}
