package org.gristway;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileSystemException;
import java.nio.file.FileSystemLoopException;
import java.nio.file.NoSuchFileException;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/**
 * Something went wrong that a user can act on. The message is one line: what happened, where, and
 * what to do. The kind decides the exit code of the command line and the exception class of other
 * languages, so its numbers never change.
 *
 * <p>Anything else that is thrown out of this library (a {@link NullPointerException}, say) is a
 * bug of ours.
 */
public final class Failure extends RuntimeException {

  /** What a failure means to whoever made the call. */
  public enum Kind {
    /** The data is damaged or incomplete. */
    DAMAGED(1),
    /** The call is wrong, or names nothing that exists. */
    WRONG_CALL(2),
    /** The surroundings: no space, no permission, out of reach, in use. */
    ENVIRONMENT(3);

    private final int number;

    Kind(int number) {
      this.number = number;
    }

    /** The exit code of a command that ends with this kind. */
    public int number() {
      return number;
    }
  }

  private final Kind kind;

  private Failure(Kind kind, String message, @Nullable Throwable cause) {
    super(oneLine(message), cause);
    this.kind = kind;
  }

  /** What this failure means to the caller. */
  public Kind kind() {
    return kind;
  }

  /** The data is damaged or incomplete. */
  public static Failure damaged(String format, @Nullable Object... arguments) {
    return new Failure(Kind.DAMAGED, fill(format, arguments), null);
  }

  /** The call is wrong, or names nothing that exists. */
  public static Failure wrongCall(String format, @Nullable Object... arguments) {
    return new Failure(Kind.WRONG_CALL, fill(format, arguments), null);
  }

  /** The surroundings do not allow it. */
  public static Failure environment(String format, @Nullable Object... arguments) {
    return new Failure(Kind.ENVIRONMENT, fill(format, arguments), null);
  }

  /** An I/O error met while doing {@code what} (such as "write out/chunk-000001.gwc"). */
  public static Failure io(String what, IOException cause) {
    String reason = reason(cause);
    String remedy = "";
    if (isFull(cause)) {
      remedy = "; free some space there, or name a target elsewhere";
    } else if (isDenied(cause)) {
      remedy = "; check who owns it and its mode";
    }
    return new Failure(Kind.ENVIRONMENT, "cannot " + what + ": " + reason + remedy, cause);
  }

  /** True if the file system or the user's share of it is full. */
  public static boolean isFull(IOException cause) {
    String reason = reason(cause);
    return reason.contains("No space left") || reason.contains("quota exceeded");
  }

  /** True if permission is what is missing. */
  public static boolean isDenied(IOException cause) {
    String reason = reason(cause);
    return reason.contains("ermission denied") || reason.contains("Operation not permitted");
  }

  /** The cause in a few words, without the path that the JDK puts in front. */
  public static String reason(IOException cause) {
    return switch (cause) {
      case AccessDeniedException _ -> "permission denied";
      case NoSuchFileException _, FileNotFoundException _ -> "no such file or folder";
      case FileSystemLoopException _ -> "a loop of links";
      case FileSystemException known when known.getReason() != null -> known.getReason();
      default -> cause.getMessage() == null ? cause.getClass().getSimpleName() : cause.getMessage();
    };
  }

  private static String fill(String format, @Nullable Object... arguments) {
    return arguments.length == 0 ? format : String.format(Locale.ROOT, format, arguments);
  }

  /**
   * Shows a text that holds names as one line: names may hold anything, and a control character
   * could end the line or give orders to a terminal. Such characters are written as {@code \n},
   * {@code \t} or {@code \x} and two digits.
   */
  public static String oneLine(String message) {
    StringBuilder line = new StringBuilder(message.length());
    message
        .codePoints()
        .forEach(
            c -> {
              if (c == '\n') {
                line.append("\\n");
              } else if (c == '\t') {
                line.append("\\t");
              } else if (Character.isISOControl(c)) {
                line.append(String.format(Locale.ROOT, "\\x%02x", c));
              } else {
                line.appendCodePoint(c);
              }
            });
    return line.toString();
  }
}
