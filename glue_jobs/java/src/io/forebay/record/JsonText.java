package io.forebay.record;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * JSON in memory: where its values begin and end. Strict, except that {@code NaN}, {@code Infinity} and
 * {@code -Infinity} are numbers, as with many writers. Positions are those of bytes; -1 says that there is none.
 */
final class JsonText {

  /** What is nested deeper is refused: the number of {@code forebay/nesting.py}, which a test compares. */
  private static final int DEEPEST = 200;

  /** Bytes that stand for themselves in a string: no quote, no backslash, no control character. */
  private static final boolean[] IS_PLAIN = new boolean[256];

  static {
    Arrays.fill(IS_PLAIN, ' ', IS_PLAIN.length, true);
    IS_PLAIN['"'] = false;
    IS_PLAIN['\\'] = false;
  }

  private final byte[] text;

  JsonText(byte[] text) {
    this.text = text;
  }

  int length() {
    return text.length;
  }

  int at(int position) {
    return position < text.length ? text[position] : 0;
  }

  int white(int position) {
    int at = position;
    while (at < text.length && (text[at] == ' ' || text[at] == '\n' || text[at] == '\r' || text[at] == '\t')) {
      at++;
    }
    return at;
  }

  /** Where the value that begins here ends; -1 where it is none. */
  int value(int start, int depth) {
    switch (at(start)) {
      case '"':
        return string(start);
      case '{':
        return depth < DEEPEST ? container(start, depth, '}') : -1;
      case '[':
        return depth < DEEPEST ? container(start, depth, ']') : -1;
      case 't':
        return word(start, "true");
      case 'f':
        return word(start, "false");
      case 'n':
        return word(start, "null");
      case 'N':
        return word(start, "NaN");
      case 'I':
        return word(start, "Infinity");
      default:
        return at(start + 1) == 'I' && at(start) == '-' ? word(start, "-Infinity") : number(start);
    }
  }

  private int container(int start, int depth, char close) {
    int at = white(start + 1);
    if (at(at) == close) {
      return at + 1;
    }
    while (true) {
      if (close == '}') {
        at = at(at) == '"' ? string(at) : -1;
        at = at < 0 ? -1 : white(at);
        if (at < 0 || at(at) != ':') {
          return -1;
        }
        at = white(at + 1);
      }
      at = value(at, depth + 1);
      if (at < 0) {
        return -1;
      }
      at = white(at);
      if (at(at) == close) {
        return at + 1;
      }
      if (at(at) != ',') {
        return -1;
      }
      at = white(at + 1);
    }
  }

  int string(int start) {
    int at = behindPlain(start + 1);
    while (at(at) == '\\') {
      at++;
      if (at(at) == 'u') {
        for (int digit = 1; digit <= 4; digit++) {
          if (Character.digit(at(at + digit), 16) < 0) {
            return -1;
          }
        }
        at += 4;
      } else if ("\"\\/bfnrt".indexOf(at(at)) < 0) {
        return -1;
      }
      at = behindPlain(at + 1);
    }
    return at(at) == '"' ? at + 1 : -1;
  }

  private int behindPlain(int start) {
    int at = start;
    while (at < text.length && IS_PLAIN[text[at] & 0xFF]) {
      at++;
    }
    return at;
  }

  private int word(int start, String word) {
    for (int n = 0; n < word.length(); n++) {
      if (at(start + n) != word.charAt(n)) {
        return -1;
      }
    }
    return start + word.length();
  }

  private int number(int start) {
    int at = at(start) == '-' ? start + 1 : start;
    int whole = digits(at);
    if (whole == at || (at(at) == '0' && whole > at + 1)) {
      return -1;
    }
    at = whole;
    if (at(at) == '.') {
      int fraction = digits(at + 1);
      if (fraction == at + 1) {
        return -1;
      }
      at = fraction;
    }
    if (at(at) == 'e' || at(at) == 'E') {
      int first = at(at + 1) == '+' || at(at + 1) == '-' ? at + 2 : at + 1;
      int exponent = digits(first);
      return exponent == first ? -1 : exponent;
    }
    return at;
  }

  private int digits(int start) {
    int at = start;
    while (at < text.length && text[at] >= '0' && text[at] <= '9') {
      at++;
    }
    return at;
  }

  /** Whether it is nested deeper than the limit. For a text that is not JSON, this counts brackets. */
  boolean isTooDeep() {
    int depth = 0;
    for (int at = 0; at < text.length; at++) {
      switch (text[at]) {
        case '"':
          at = string(at) - 1;
          if (at < 0) {
            return false;
          }
          break;
        case '{':
        case '[':
          if (++depth > DEEPEST) {
            return true;
          }
          break;
        case '}':
        case ']':
          depth--;
          break;
        default:
      }
    }
    return false;
  }

  /** Whether one or more further values follow, and nothing else. */
  boolean areMoreDocuments(int from) {
    int at = white(from);
    while (at < text.length) {
      at = value(white(at(at) == ',' ? at + 1 : at), 0);
      if (at < 0) {
        return false;
      }
      at = white(at);
    }
    return true;
  }

  // --- of a text that was found to be JSON ---

  /** The key of an object's first member. */
  int firstMember(int object) {
    int at = white(object + 1);
    return at(at) == '"' ? at : -1;
  }

  /** The value of a member, whose key ends here. */
  int valueBehind(int keyEnd) {
    return white(white(keyEnd) + 1);
  }

  int firstElement(int array) {
    int at = white(array + 1);
    return at(at) == ']' ? -1 : at;
  }

  /** The element behind this one; or the key of the member behind the one with this value. */
  int next(int value) {
    int at = white(value(value, 0));
    return at(at) == ',' ? white(at + 1) : -1;
  }

  /** The value's text: a string's characters, null if they are not valid text; the original tokens of other values. */
  UTF8String text(int start) {
    switch (at(start)) {
      case '"':
        int end = behindPlain(start + 1);
        return text[end] == '"' ? copied(start + 1, end) : unescaped(start + 1, string(start) - 1);
      case '{':
      case '[':
        return UTF8String.fromBytes(compact(start));
      default:
        return copied(start, value(start, 0));
    }
  }

  private UTF8String copied(int start, int end) {
    return UTF8String.fromBytes(Arrays.copyOfRange(text, start, end));
  }

  private UTF8String unescaped(int start, int end) {
    StringBuilder made = new StringBuilder(end - start);
    int from = start;
    for (int at = start; at < end; at++) {
      if (text[at] == '\\') {
        made.append(new String(text, from, at - from, StandardCharsets.UTF_8));
        at++;
        if (text[at] == 'u') {
          made.append((char) Integer.parseInt(new String(text, at + 1, 4, StandardCharsets.US_ASCII), 16));
          at += 4;
        } else {
          int known = "bfnrt".indexOf(text[at]);
          made.append(known < 0 ? (char) text[at] : "\b\f\n\r\t".charAt(known));
        }
        from = at + 1;
      }
    }
    made.append(new String(text, from, end - from, StandardCharsets.UTF_8));
    boolean isText = StandardCharsets.UTF_8.newEncoder().canEncode(made);
    return isText ? UTF8String.fromString(made.toString()) : null;
  }

  /** The value without the white space between its tokens. */
  byte[] compact(int start) {
    int end = value(start, 0);
    ByteArrayOutputStream made = new ByteArrayOutputStream(end - start);
    for (int at = start; at < end; at++) {
      if (text[at] == '"') {
        int after = string(at);
        made.write(text, at, after - at);
        at = after - 1;
      } else if (text[at] > ' ') {
        made.write(text[at]);
      }
    }
    return made.toByteArray();
  }

  String slice(int start, int end) {
    return new String(text, start, end - start, StandardCharsets.UTF_8);
  }

  boolean isEscaped(int string) {
    return text[behindPlain(string + 1)] != '"';
  }

  boolean isKey(int key, int end, boolean escaped, byte[] name) {
    if (escaped) {
      return UTF8String.fromBytes(name).equals(text(key));
    }
    return end - key - 1 == name.length && Arrays.equals(text, key + 1, end, name, 0, name.length);
  }

  /** Whether the key gives the same column name: lower case, with an underscore for all but letters and digits. */
  boolean isTwin(int key, int end, boolean escaped, byte[] folded) {
    if (folded == null) {
      return false;
    }
    if (escaped) {
      UTF8String name = text(key);
      return name != null && Arrays.equals(folded(name.getBytes()), folded);
    }
    if (end - key - 1 != folded.length) {
      return false;
    }
    for (int n = 0; n < folded.length; n++) {
      byte sign = text[key + 1 + n];
      if (sign < 0 || folded(sign) != folded[n]) {
        return false;
      }
    }
    return true;
  }

  /** Null for a name beyond ASCII, which has no twins. */
  static byte[] folded(byte[] name) {
    byte[] made = new byte[name.length];
    for (int n = 0; n < name.length; n++) {
      if (name[n] < 0) {
        return null;
      }
      made[n] = folded(name[n]);
    }
    return made;
  }

  private static byte folded(byte sign) {
    if (sign >= 'A' && sign <= 'Z') {
      return (byte) (sign + ('a' - 'A'));
    }
    boolean word = (sign >= 'a' && sign <= 'z') || (sign >= '0' && sign <= '9');
    return word ? sign : (byte) '_';
  }
}
