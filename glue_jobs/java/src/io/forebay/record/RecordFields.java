package io.forebay.record;

import java.io.ByteArrayOutputStream;
import java.math.BigDecimal;
import java.math.MathContext;
import java.math.RoundingMode;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.ArrayBasedMapData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The original texts of a record's declared fields: Spark's own parser passes each number through a double.
 *
 * <p>In: a record's text, and the wanted paths, as JSON: {@code [["player","id"],["items",0]]}. Out:
 * one text for each path, null where the record has no such field or null. A string is its characters; a number keeps each
 * of its digits; an object or an array is its text without the white space between tokens. Nothing that a record holds
 * makes these methods throw.
 *
 * <p>A key that is spelled as declared comes first. Where there is none, a twin fills the field: a key that gives the same
 * column name, and of several twins the one that sorts first. {@code record/walk.py} has the same rule.
 */
public final class RecordFields {

  private static final UTF8String NOT_JSON = UTF8String.fromString("not-json");
  private static final UTF8String TOO_DEEP = UTF8String.fromString("too-deep");
  private static final UTF8String SEVERAL = UTF8String.fromString("several-documents");
  private static final int EXACT_DIGITS = 15;
  private static final int DOUBLE_DIGITS = 17;
  private static final int FLOAT_DIGITS = 9;
  private static final int PLANS_AT_MOST = 10_000;
  private static final int LONGEST_NUMBER = 4000;

  private static final Map<UTF8String, Wanted> PLANS = new ConcurrentHashMap<>();

  private RecordFields() {}

  /** A row: why the record cannot be read, or null; whether a wanted string is invalid (half of a pair); the fields. */
  public static InternalRow read(UTF8String record, UTF8String plan) {
    Wanted wanted = wanted(plan);
    Object[] row = new Object[wanted.paths + 2];
    row[1] = Boolean.FALSE;
    JsonText json = new JsonText(record.getBytes());
    int end = json.value(json.white(0), 0);
    if (end < 0 || json.at(json.white(0)) != '{') {
      row[0] = json.isTooDeep() ? TOO_DEEP : NOT_JSON;
    } else if (json.white(end) != json.length()) {
      row[0] = json.areMoreDocuments(end) ? SEVERAL : NOT_JSON;
    } else {
      fill(json, json.white(0), wanted, row);
    }
    return new GenericInternalRow(row);
  }

  private static void fill(JsonText json, int object, Wanted wanted, Object[] row) {
    Found found = new Found(json, object, wanted);
    for (int n = 0; n < wanted.names.length; n++) {
      int start = found.values[n];
      if (start < 0) {
        continue;
      }
      take(json, start, wanted.below[n], row);
    }
  }

  private static void take(JsonText json, int start, Wanted wanted, Object[] row) {
    if (wanted.index >= 0 && json.at(start) != 'n') {
      UTF8String text = json.text(start);
      row[wanted.index + 2] = text;
      if (text == null) {
        row[1] = Boolean.TRUE;
      }
    }
    if (wanted.names.length > 0 && json.at(start) == '{') {
      fill(json, start, wanted, row);
    }
    if (!wanted.elements.isEmpty() && json.at(start) == '[') {
      int last = wanted.elements.lastKey();
      int position = 0;
      for (int at = json.firstElement(start); at >= 0 && position <= last; at = json.next(at), position++) {
        Wanted below = wanted.elements.get(position);
        if (below != null) {
          take(json, at, below, row);
        }
      }
    }
  }

  /** These fields as JSON: {@code [{"player":{"id":1.50}},...]}, with the keys and the numbers as the record has them. */
  public static UTF8String written(UTF8String record, UTF8String plan) {
    JsonText json = new JsonText(record.getBytes());
    if (json.value(json.white(0), 0) < 0 || json.at(json.white(0)) != '{') {
      return null;
    }
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    out.write('[');
    write(json, json.white(0), wanted(plan), "", 0, out);
    out.write(']');
    return UTF8String.fromBytes(out.toByteArray());
  }

  private static void write(
      JsonText json, int object, Wanted wanted, String before, int depth, ByteArrayOutputStream out) {
    Found found = new Found(json, object, wanted);
    for (int n = 0; n < wanted.names.length; n++) {
      int start = found.values[n];
      if (start < 0) {
        continue;
      }
      String path = before + "{" + json.slice(found.keys[n], json.string(found.keys[n])) + ":";
      if (wanted.below[n].index >= 0 && json.at(start) != 'n') {
        if (out.size() > 1) {
          out.write(',');
        }
        out.writeBytes(UTF8String.fromString(path).getBytes());
        out.writeBytes(json.compact(start));
        for (int closed = 0; closed <= depth; closed++) {
          out.write('}');
        }
      }
      if (wanted.below[n].names.length > 0 && json.at(start) == '{') {
        write(json, start, wanted.below[n], path, depth + 1, out);
      }
    }
  }

  /** An object's members, each as text; null for other values, and for an object with an invalid string. */
  public static MapData members(UTF8String text) {
    JsonText json = new JsonText(text.getBytes());
    int object = json.white(0);
    int end = json.value(object, 0);
    if (end < 0 || json.at(object) != '{' || json.white(end) != json.length()) {
      return null;
    }
    Map<UTF8String, UTF8String> members = new LinkedHashMap<>();
    for (int at = json.firstMember(object), start; at >= 0; at = json.next(start)) {
      start = json.valueBehind(json.string(at));
      boolean isNull = json.at(start) == 'n';
      UTF8String key = json.text(at);
      UTF8String value = isNull ? null : json.text(start);
      if (key == null || (value == null && !isNull)) {
        return null;
      }
      members.put(key, value);
    }
    return new ArrayBasedMapData(
        new GenericArrayData(members.keySet().toArray()), new GenericArrayData(members.values().toArray()));
  }

  /** The number that the text is, if that many digits hold it without rounding; else null. */
  public static Decimal decimal(UTF8String text, int precision, int scale) {
    BigDecimal number = number(text);
    boolean isZero = number != null && number.signum() == 0; // of however many digits it is written with
    if (number == null || (!isZero && number.precision() - (long) number.scale() > precision - scale)) {
      return null;
    }
    BigDecimal plain = isZero ? BigDecimal.ZERO : number.stripTrailingZeros();
    return plain.scale() > scale ? null : Decimal.apply(plain.setScale(scale), precision, scale);
  }

  /** Whether a double, or a float, has exactly the text's number. The text must be a number. */
  public static boolean isExact(UTF8String text, boolean single) {
    String written = text.toString();
    boolean plain = written.length() <= EXACT_DIGITS && written.indexOf('e') < 0 && written.indexOf('E') < 0;
    if (plain && !single) {
      return true;
    }
    BigDecimal number = number(text);
    if (number == null) {
      return written.chars().noneMatch(Character::isDigit); // NaN and Infinity are exact
    }
    double held = single ? number.floatValue() : number.doubleValue();
    if (Double.isInfinite(held)) {
      return false;
    }
    BigDecimal exact = new BigDecimal(held);
    return exact.compareTo(number) == 0 || isShortest(number.stripTrailingZeros(), exact, single);
  }

  /** Whether no number of fewer digits reads as this double or float. Before Java 19, {@code toString} may give more digits. */
  private static boolean isShortest(BigDecimal number, BigDecimal exact, boolean single) {
    int digits = number.precision();
    if (digits > (single ? FLOAT_DIGITS : DOUBLE_DIGITS) || rounded(exact, digits).compareTo(number) != 0) {
      return false;
    }
    BigDecimal shorter = digits == 1 ? BigDecimal.ZERO : rounded(exact, digits - 1);
    return single ? shorter.floatValue() != exact.floatValue() : shorter.doubleValue() != exact.doubleValue();
  }

  private static BigDecimal rounded(BigDecimal number, int digits) {
    return number.round(new MathContext(digits, RoundingMode.HALF_EVEN));
  }

  /** None where it has digits of other scripts, which Java reads and JSON does not. */
  static BigDecimal number(UTF8String text) {
    String plain = text.numBytes() > LONGEST_NUMBER || !text.isFullAscii() ? "" : text.toString().trim();
    try {
      BigDecimal number = new BigDecimal(plain);
      return Math.abs((long) number.scale()) > LONGEST_NUMBER ? null : number;
    } catch (NumberFormatException notOne) {
      return null;
    }
  }

  private static Wanted wanted(UTF8String plan) {
    Wanted known = PLANS.get(plan);
    if (known == null) {
      known = Wanted.of(new JsonText(plan.getBytes()));
      if (PLANS.size() > PLANS_AT_MOST) {
        PLANS.clear(); // what does not fit differs from record to record
      }
      PLANS.put(plan.clone(), known);
    }
    return known;
  }

  /** What is wanted of one value: keys of an object, positions of an array. */
  private static final class Wanted {
    private String[] names = new String[0];
    private byte[][] spelled = new byte[0][];
    private byte[][] folded = new byte[0][];
    private Wanted[] below = new Wanted[0];
    private final TreeMap<Integer, Wanted> elements = new TreeMap<>();
    private int index = -1;
    private int paths;

    static Wanted of(JsonText plan) {
      Wanted root = new Wanted();
      for (int path = plan.firstElement(0); path >= 0; path = plan.next(path)) {
        Wanted node = root;
        for (int key = plan.firstElement(path); key >= 0; key = plan.next(key)) {
          String step = plan.text(key).toString();
          node =
              plan.at(key) == '"'
                  ? node.child(step)
                  : node.elements.computeIfAbsent(Integer.valueOf(step), position -> new Wanted());
        }
        node.index = root.paths++;
      }
      return root;
    }

    private Wanted child(String name) {
      int known = Arrays.asList(names).indexOf(name);
      if (known >= 0) {
        return below[known];
      }
      int size = names.length;
      names = Arrays.copyOf(names, size + 1);
      spelled = Arrays.copyOf(spelled, size + 1);
      folded = Arrays.copyOf(folded, size + 1);
      below = Arrays.copyOf(below, size + 1);
      names[size] = name;
      spelled[size] = UTF8String.fromString(name).getBytes();
      folded[size] = JsonText.folded(spelled[size]);
      below[size] = new Wanted();
      return below[size];
    }
  }

  /** Where an object has what is wanted of it: the places of keys and of values, -1 where it has not. */
  private static final class Found {
    private final int[] keys;
    private final int[] values;

    Found(JsonText json, int object, Wanted wanted) {
      keys = new int[wanted.names.length];
      values = new int[wanted.names.length];
      String[] twins = new String[wanted.names.length];
      boolean[] exact = new boolean[wanted.names.length];
      Arrays.fill(values, -1);
      for (int at = json.firstMember(object), start; at >= 0; at = json.next(start)) {
        int end = json.string(at) - 1;
        start = json.valueBehind(end + 1);
        boolean escaped = json.isEscaped(at);
        for (int n = 0; n < wanted.names.length; n++) {
          if (!escaped && end - at - 1 != wanted.spelled[n].length) {
            continue; // a twin has the same number of bytes
          }
          if (json.isKey(at, end, escaped, wanted.spelled[n])) {
            exact[n] = true;
          } else if (exact[n] || !json.isTwin(at, end, escaped, wanted.folded[n])) {
            continue;
          } else {
            String key = json.text(at).toString();
            if (twins[n] != null && twins[n].compareTo(key) < 0) {
              continue;
            }
            twins[n] = key;
          }
          keys[n] = at;
          values[n] = start;
        }
      }
    }
  }
}
