package org.gristway.chunk;

import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.Locale;
import org.gristway.Failure;
import org.jspecify.annotations.Nullable;

/**
 * What may be a key: a relative path in UTF-8, its components separated by single slashes, none of
 * them empty, "." or "..". So a key never leads out of the folder it is unpacked into.
 */
public final class Key {

  private Key() {}

  /** Says what is wrong with a key, or null if nothing is. */
  public static @Nullable String fault(byte[] key) {
    if (key.length == 0) {
      return "it is empty";
    }
    if (key.length > SampleEntry.MAX_KEY) {
      return "it is longer than " + SampleEntry.MAX_KEY + " bytes";
    }
    if (!isUtf8(key)) {
      return "it is not UTF-8";
    }
    if (key[0] == '/') {
      return "it is absolute";
    }
    int start = 0;
    for (int i = 0; i <= key.length; i++) {
      if (i < key.length && key[i] == 0) {
        return "it holds a zero byte";
      }
      if (i == key.length || key[i] == '/') {
        int length = i - start;
        if (length == 0) {
          return "it has an empty component";
        }
        if (length == 1 && key[start] == '.') {
          return "it has the component '.'";
        }
        if (length == 2 && key[start] == '.' && key[start + 1] == '.') {
          return "it has the component '..'";
        }
        start = i + 1;
      }
    }
    return null;
  }

  /** The key's first path component, or null if it has only one: the folder a class is named by. */
  public static byte @Nullable [] firstFolder(byte[] key) {
    for (int i = 0; i < key.length; i++) {
      if (key[i] == '/') {
        return java.util.Arrays.copyOf(key, i);
      }
    }
    return null;
  }

  public static boolean isUtf8(byte[] bytes) {
    boolean ascii = true;
    for (byte b : bytes) {
      ascii &= b >= 0;
    }
    if (ascii) {
      return true;
    }
    try {
      StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes));
      return true;
    } catch (CharacterCodingException notText) {
      return false;
    }
  }

  /**
   * Shows a name of any bytes on one line: control characters are written as {@link
   * Failure#oneLine} does; of a name that is no text, every byte that is not a printable ASCII
   * character is written as backslash, x and two digits.
   */
  public static String escape(byte[] name) {
    if (isUtf8(name)) {
      return Failure.oneLine(new String(name, StandardCharsets.UTF_8));
    }
    StringBuilder shown = new StringBuilder();
    for (byte b : name) {
      if (b >= ' ' && b != '\\' && b != 0x7f) {
        shown.append((char) b);
      } else {
        shown.append(String.format(Locale.ROOT, "\\x%02x", b & 0xff));
      }
    }
    return shown.toString();
  }
}
