package io.forebay.record;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.math.RoundingMode;
import java.time.DateTimeException;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Texts become times, and nothing is guessed: ISO 8601 with a whole date, with or without a time, seconds and an offset.
 *
 * <p>Spark's own cast takes {@code 10:30} for today, by the clock, and {@code 86400} for a year. Out: microseconds
 * since 1970 and days since 1970, in the years 1 to 9999; null for anything else. Without an offset a time is one of UTC.
 * Digits after the sixth of a second's fraction are dropped, since no reader of Delta has a place for them.
 */
public final class Moment {

  private static final String OFFSET = "(?: ?(Z|z|UTC|GMT)|([+-])(\\d\\d)(?::?(\\d\\d))?)?";
  private static final Pattern EXTENDED =
      Pattern.compile(
          "(\\d{4})-(\\d\\d)-(\\d\\d)(?:[Tt ](\\d\\d)(?::(\\d\\d)(?::(\\d\\d)(?:[.,](\\d+))?)?)?" + OFFSET + ")?");
  private static final Pattern BASIC =
      Pattern.compile("(\\d{4})(\\d\\d)(\\d\\d)[Tt](\\d\\d)(?:(\\d\\d)(?:(\\d\\d)(?:[.,](\\d+))?)?)?" + OFFSET);
  private static final int LONGEST = 64;
  private static final long FIRST = micros(LocalDateTime.of(1, 1, 1, 0, 0));
  private static final long AFTER = micros(LocalDateTime.of(10_000, 1, 1, 0, 0));

  /** As nearly all producers write a time, with up to six digits of a fraction, and a Z behind it. */
  private static final String USUAL = "0000-00-00T00:00:00.000000";

  private static final int SECONDS = 19; // where they end

  private Moment() {}

  /** Microseconds since 1970. */
  public static Long micros(UTF8String text) {
    try {
      LocalDateTime usual = usual(text.getBytes());
      LocalDateTime utc = usual == null ? any(text) : usual;
      return utc == null || !within(micros(utc)) ? null : (Long) micros(utc);
    } catch (DateTimeException none) {
      return null;
    }
  }

  /** A time in the usual form, read without a pattern, which takes a tenth of the time. Null for any other. */
  private static LocalDateTime usual(byte[] text) {
    int end = text.length - 1;
    if (end < SECONDS || end == SECONDS + 1 || end > USUAL.length() || text[end] != 'Z') {
      return null;
    }
    for (int at = 0; at < end; at++) {
      char wanted = USUAL.charAt(at);
      if (wanted == '0' ? text[at] < '0' || text[at] > '9' : text[at] != wanted) {
        return null;
      }
    }
    int nanos = 0;
    for (int at = SECONDS + 1, unit = 100_000_000; at < end; at++, unit /= 10) {
      nanos += (text[at] - '0') * unit;
    }
    LocalDate day = day(number(text, 0, 4), number(text, 5, 7), number(text, 8, 10));
    return day.atTime(number(text, 11, 13), number(text, 14, 16), number(text, 17, 19), nanos);
  }

  private static int number(byte[] text, int start, int end) {
    int number = 0;
    for (int at = start; at < end; at++) {
      number = 10 * number + text[at] - '0';
    }
    return number;
  }

  private static LocalDateTime any(UTF8String text) {
    Matcher found = parsed(text);
    return found == null
        ? null
        : day(found)
            .atTime(part(found, 4), part(found, 5), part(found, 6), nanos(found.group(7)))
            .minusSeconds(offset(found));
  }

  /** Days since 1970, of the written date. */
  public static Integer days(UTF8String text) {
    Matcher found = micros(text) == null ? null : parsed(text);
    return found == null ? null : (int) day(found).toEpochDay();
  }

  /** Microseconds since 1970, of a number of units with {@code places} decimal places of a second: 3 for milliseconds. */
  public static Long since1970(UTF8String text, int places) {
    BigDecimal number = RecordFields.number(text);
    if (number == null || number.precision() - (long) number.scale() > LONGEST) {
      return null;
    }
    BigInteger micros = number.movePointRight(6 - places).setScale(0, RoundingMode.FLOOR).toBigInteger();
    return micros.bitLength() < Long.SIZE && within(micros.longValue()) ? (Long) micros.longValue() : null;
  }

  private static boolean within(long micros) {
    return micros >= FIRST && micros < AFTER;
  }

  private static Matcher parsed(UTF8String text) {
    if (text.numBytes() > LONGEST) {
      return null;
    }
    String written = text.toString().trim();
    Matcher extended = EXTENDED.matcher(written);
    if (extended.matches()) {
      return extended;
    }
    Matcher basic = BASIC.matcher(written);
    return basic.matches() ? basic : null;
  }

  private static LocalDate day(Matcher found) {
    return day(part(found, 1), part(found, 2), part(found, 3));
  }

  private static LocalDate day(int year, int month, int day) {
    if (year == 0) {
      throw new DateTimeException("there is no year 0");
    }
    return LocalDate.of(year, month, day);
  }

  private static int part(Matcher found, int group) {
    return found.group(group) == null ? 0 : Integer.parseInt(found.group(group));
  }

  private static int nanos(String fraction) {
    return fraction == null ? 0 : Integer.parseInt((fraction + "000000").substring(0, 6)) * 1000;
  }

  private static int offset(Matcher found) {
    int hours = part(found, 10);
    int minutes = part(found, 11);
    if (hours * 60 + minutes > 18 * 60 || minutes > 59) {
      throw new DateTimeException("no place is so far away");
    }
    return (hours * 60 + minutes) * ("-".equals(found.group(9)) ? -60 : 60);
  }

  private static long micros(LocalDateTime utc) {
    return utc.toEpochSecond(ZoneOffset.UTC) * 1_000_000 + utc.getNano() / 1000;
  }
}
