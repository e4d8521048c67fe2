package org.gristway.os;

import java.io.IOException;
import java.util.Set;

/** A native call that failed, with the error's number and its usual words. */
public final class PosixException extends IOException {

  public static final int ENOENT = 2;
  public static final int EWOULDBLOCK = 11;
  public static final int EISDIR = 21;
  public static final int EINVAL = 22;
  public static final int ENFILE = 23;
  public static final int EMFILE = 24;
  public static final int ENAMETOOLONG = 36;
  public static final int ENOSYS = 38;
  public static final int ELOOP = 40;
  public static final int EOPNOTSUPP = 95;
  public static final int ESTALE = 116;

  /**
   * EIO, ENXIO, ENODEV, ENODATA, ENOLINK, ECOMM, EPROTO, EBADMSG, EILSEQ, ENETDOWN, ENETUNREACH,
   * ENETRESET, ECONNABORTED, ECONNRESET, ENOTCONN, ESHUTDOWN, ETIMEDOUT, ECONNREFUSED, EHOSTDOWN,
   * EHOSTUNREACH, ESTALE, EUCLEAN, EREMOTEIO, ENOMEDIUM, EKEYEXPIRED.
   */
  private static final Set<Integer> OF_THE_STORAGE =
      Set.of(
          5, 6, 19, 61, 67, 70, 71, 74, 84, 100, 101, 102, 103, 104, 107, 108, 110, 111, 112, 113,
          ESTALE, 117, 121, 123, 127);

  private final int number;

  PosixException(int number) {
    super(words(number));
    this.number = number;
  }

  /** With words of its own, where the usual ones would mislead. */
  PosixException(int number, String words) {
    super(words);
    this.number = number;
  }

  /** The system's errno. */
  public int number() {
    return number;
  }

  /**
   * True if a device or a mount reports trouble of its own, which may pass: a fail-over, a network
   * that is down, a bad sector. Permission, space and wrong calls are none of it.
   */
  public boolean isOfTheStorage() {
    return OF_THE_STORAGE.contains(number);
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
      case 19 -> "No such device";
      case 20 -> "Not a directory";
      case EISDIR -> "Is a directory";
      case EINVAL -> "Invalid argument";
      case ENFILE -> "Too many open files on this machine; raise 'fs.file-max'";
      case EMFILE -> "Too many open files; raise 'ulimit -n'";
      case 27 -> "File too large";
      case 28 -> "No space left on device";
      case 30 -> "Read-only file system";
      case ENAMETOOLONG -> "File name too long";
      case ENOSYS -> "Function not implemented by this file system";
      case 39 -> "Directory not empty";
      case ELOOP -> "a loop of links";
      case 61 -> "No data available";
      case 74 -> "Bad message";
      case EOPNOTSUPP -> "Operation not supported";
      case 107 -> "Transport endpoint is not connected";
      case 110 -> "Connection timed out";
      case 112 -> "Host is down";
      case 113 -> "No route to host";
      case ESTALE -> "Stale file handle";
      case 117 -> "Structure needs cleaning";
      case 121 -> "Remote I/O error";
      case 122 -> "Disk quota exceeded";
      default -> "system error " + number;
    };
  }
}
