package io.forebay.record;

import java.math.BigDecimal;
import java.math.RoundingMode;
import java.time.DateTimeException;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.time.temporal.ChronoUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Texts become times, and nothing is guessed: ISO 8601 with a whole date, with or without a time, seconds and an offset.
 *
 * <p>Spark's own cast takes {@code 10:30} for today, by the clock, and {@code 86400} for a year. What leaves: microseconds
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
  private static final BigDecimal FIRST = BigDecimal.valueOf(micros(LocalDateTime.of(1, 1, 1, 0, 0)));
  private static final BigDecimal AFTER = BigDecimal.valueOf(micros(LocalDateTime.of(10_000, 1, 1, 0, 0)));

  private Moment() {}

  /** Microseconds since 1970. */
  public static Long micros(UTF8String text) {
    Matcher found = parsed(text);
    if (found == null) {
      return null;
    }
    try {
      LocalDateTime local = day(found).atTime(part(found, 4), part(found, 5), part(found, 6), nanos(found.group(7)));
      BigDecimal micros = BigDecimal.valueOf(micros(local.minusSeconds(offset(found))));
      return within(micros) ? micros.longValueExact() : null;
    } catch (DateTimeException none) {
      return null;
    }
  }

  /** Days since 1970, of the date as it is written. */
  public static Integer days(UTF8String text) {
    Matcher found = micros(text) == null ? null : parsed(text);
    return found == null ? null : (int) day(found).toEpochDay();
  }

  /** Microseconds since 1970, of a number that counts units of so many decimal places of a second: 3 for milliseconds. */
  public static Long since1970(UTF8String text, int places) {
    BigDecimal number = RecordFields.number(text);
    if (number == null || number.precision() - (long) number.scale() > LONGEST) {
      return null;
    }
    BigDecimal micros = number.movePointRight(6 - places).setScale(0, RoundingMode.FLOOR);
    return within(micros) ? (Long) micros.longValueExact() : null;
  }

  private static boolean within(BigDecimal micros) {
    return micros.compareTo(FIRST) >= 0 && micros.compareTo(AFTER) < 0;
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
    int year = part(found, 1);
    if (year == 0) {
      throw new DateTimeException("there is no year 0");
    }
    return LocalDate.of(year, part(found, 2), part(found, 3));
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
    return ChronoUnit.MICROS.between(LocalDateTime.ofEpochSecond(0, 0, ZoneOffset.UTC), utc);
  }
}
