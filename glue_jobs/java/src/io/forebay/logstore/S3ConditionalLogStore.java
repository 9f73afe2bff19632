package io.forebay.logstore;

import io.delta.storage.S3SingleDriverLogStore;
import java.io.ByteArrayOutputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.io.UncheckedIOException;
import java.nio.channels.ClosedByInterruptException;
import java.nio.charset.StandardCharsets;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileAlreadyExistsException;
import java.util.Arrays;
import java.util.Iterator;
import java.util.concurrent.ThreadLocalRandom;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.s3a.RemoteFileChangedException;
import org.apache.hadoop.fs.s3a.UnknownStoreException;
import org.apache.hadoop.fs.statistics.IOStatistics;
import org.apache.hadoop.fs.statistics.StoreStatisticNames;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import software.amazon.awssdk.awscore.exception.AwsServiceException;
import software.amazon.awssdk.core.exception.SdkException;

/**
 * Delta's log on S3, safe for many writers: a commit is one PUT that S3 refuses where the object exists already.
 *
 * <p>In: a path of the log and its lines. Out: the object is there with exactly these bytes, or
 * {@link FileAlreadyExistsException} says that another writer took this version (Delta then reads what happened and
 * tries the next one). {@link CommitRefused} says that S3 refused the only request that was sent: nothing can arrive
 * later. {@link CommitUnknown} says that a request was sent and its answer is not known: it may still arrive, so the
 * caller must not take it for "not committed". Both are unchecked, because Delta Kernel repeats a commit that ended
 * in an IOException, twenty times and without a pause, after this class has done all the repeating that makes sense.
 *
 * <p><b>Who won?</b> The S3 client repeats a PUT whose answer was lost, so "412, it exists" may be about our own first
 * attempt. Taking that for a lost race makes Delta commit the same files again at the next version, where a streaming
 * reader of the table meets its rows twice; or, where the commit carries a transaction id, fail as if another run had
 * been quicker. So after any failure the object itself is asked: the bytes are ours, another's, or nothing is there;
 * and where it cannot be read, we do not guess. Equal bytes are our own attempt because Delta puts a random transaction
 * id into the commit info of each commit, and names data files by random ids. Even with commit info switched off
 * nothing could be lost: two commits with the same bytes carry the same actions, and Delta's replay of a log gives the
 * same table for them once as twice.
 *
 * <p><b>What is kept of the parent</b> (delta-storage 4.2.0; it holds no state but a lock): reading, listing with its
 * {@code delta.enableFastS3AListFrom}, "no partial write is visible", and writes that overwrite
 * ({@code _last_checkpoint}), where the last one winning is what Delta wants. <b>What is not:</b> its look whether the
 * path exists and its lock per path. They guard one JVM only, and S3 now guards all of them; one request less.
 */
public class S3ConditionalLogStore extends S3SingleDriverLogStore {

  /** Hadoop 3.4.2's name for "the store itself decides at close() whether this file may be created". */
  public static final String CONDITIONAL_CREATE = "fs.option.create.conditional.overwrite";

  private static final Logger LOG = LoggerFactory.getLogger(S3ConditionalLogStore.class);

  /** 409 means that writers of one key met inside S3, which asks for another try; it answers quickly. */
  private static final int CONFLICTS_AT_MOST = 12;

  /** S3A has retried each of these for a while already, so few of ours make a long time. */
  private static final int FAILURES_AT_MOST = 3;

  private static final long FIRST_WAIT_MS = 50;
  private static final long LONGEST_WAIT_MS = 1_000;

  private static final int NO_ANSWER = -1;

  /** This file system cannot be written to safely by two; the message says which one, and what could. */
  public static class CannotCreateConditionally extends IOException {
    private static final long serialVersionUID = 1L;

    CannotCreateConditionally(String message) {
      super(message);
    }
  }

  /** S3 answered the only request for this commit, and the answer was no. Repeating it does not help. */
  public static class CommitRefused extends UncheckedIOException {
    private static final long serialVersionUID = 1L;

    CommitRefused(Path path, IOException cause) {
      super(
          isDenied(cause)
              ? "S3 does not let this role write " + path + ": it needs s3:PutObject there, and kms:GenerateDataKey and"
                  + " kms:Decrypt if the bucket is encrypted with a KMS key. S3 said: " + cause.getMessage()
              : "S3 refused to write " + path + ": " + cause.getMessage(),
          cause);
    }
  }

  /** A request for this commit was sent, and nothing says whether S3 took it. It may still arrive. */
  public static class CommitUnknown extends UncheckedIOException {
    private static final long serialVersionUID = 1L;

    CommitUnknown(Path path, IOException cause) {
      super("it is unknown whether S3 took " + path + ": " + cause.getMessage(), cause);
    }
  }

  /** An attempt that failed. S3A and the SDK repeat requests by themselves; {@code only} says that they did not. */
  private record Failure(IOException cause, boolean only) {}

  private enum Found { OURS, ANOTHERS, NOTHING, UNKNOWN }

  public S3ConditionalLogStore(Configuration hadoopConf) {
    super(hadoopConf);
  }

  @Override
  public void write(Path path, Iterator<String> actions, Boolean overwrite, Configuration hadoopConf)
      throws IOException {
    if (overwrite) {
      super.write(path, actions, true, hadoopConf);
      return;
    }
    FileSystem fs = path.getFileSystem(hadoopConf);
    refuseWithoutConditionalCreate(fs, path);
    // In memory, since the iterator can be walked once and an attempt may have to be repeated or compared.
    createOnce(fs, fs.makeQualified(path), bytesOf(actions));
  }

  private static void refuseWithoutConditionalCreate(FileSystem fs, Path path) throws IOException {
    if (!fs.hasPathCapability(path, CONDITIONAL_CREATE)) {
      throw new CannotCreateConditionally(
          fs.getClass().getName() + " cannot create " + path + " only where nothing is there yet (it lacks "
              + CONDITIONAL_CREATE + "), so two writers would lose commits; Hadoop's S3A can, from 3.4.2 on,"
              + " unless fs.s3a.create.conditional.enabled is false");
    }
  }

  private static byte[] bytesOf(Iterator<String> lines) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    while (lines.hasNext()) {
      bytes.writeBytes(lines.next().getBytes(StandardCharsets.UTF_8));
      bytes.write('\n');
    }
    return bytes.toByteArray();
  }

  /** Creates the object with these bytes, or says in one of the ways above why it is not known to be there. */
  public static void createOnce(FileSystem fs, Path path, byte[] bytes) throws IOException {
    IOException first = null;
    int conflicts = 0;
    int failures = 0;
    while (true) {
      Failure attempt = putIfAbsent(fs, path, bytes);
      if (attempt == null) {
        return;
      }
      IOException failure = attempt.cause();
      boolean only = attempt.only() && first == null;
      first = joined(first, failure);
      if (isInterruption(failure)) {
        throw first;
      }
      switch (whatIsThere(fs, path, bytes, first)) {
        case OURS -> {
          LOG.info("{} is our own earlier attempt, whose answer was lost: {}", path, failure.toString());
          return;
        }
        case ANOTHERS -> throw lostTheRace(path, first);
        default -> { // Nothing there, or it could not be read: another conditional PUT is safe, and tells.
          boolean conflict = status(failure) == 409;
          conflicts += conflict ? 1 : 0;
          failures += conflict ? 0 : 1;
          if (!mayHelpToRepeat(failure) && only) {
            throw new CommitRefused(path, failure);
          }
          if (conflicts >= CONFLICTS_AT_MOST || failures >= FAILURES_AT_MOST || !mayHelpToRepeat(failure)) {
            throw new CommitUnknown(path, first);
          }
          waitBefore(conflicts + failures, first);
        }
      }
    }
  }

  /** One PUT, or one completed multipart upload for a very long commit, that fails where the object exists. */
  private static Failure putIfAbsent(FileSystem fs, Path path, byte[] bytes) {
    FSDataOutputStream out;
    try {
      // Recursive: S3 has no folders, and without it a file system may look for the parent first.
      out = (FSDataOutputStream)
          fs.createFile(path).overwrite(false).recursive().must(CONDITIONAL_CREATE, true).build();
    } catch (IOException e) {
      return new Failure(e, true);
    }
    try {
      out.write(bytes);
    } catch (IOException | RuntimeException e) {
      // Never close() here: closing is what publishes, and half a commit would be published.
      abandon(out, e);
      if (e instanceof IOException) {
        return new Failure((IOException) e, true);
      }
      throw (RuntimeException) e;
    }
    try {
      out.close();
      return null;
    } catch (IOException e) {
      return new Failure(e, wasTheOnlyRequest(out, e));
    }
  }

  /** S3A counts the PUTs of a stream; the SDK leaves the failures of its earlier attempts at the last one. */
  private static boolean wasTheOnlyRequest(FSDataOutputStream out, IOException failure) {
    int depth = 0;
    for (Throwable t = failure; t != null && depth < 20; t = t.getCause(), depth++) {
      if (t instanceof SdkException && t.getSuppressed().length > 0) {
        return false;
      }
    }
    IOStatistics statistics = out.getIOStatistics();
    Long puts = statistics == null ? null : statistics.counters().get(StoreStatisticNames.OBJECT_PUT_REQUEST);
    return puts != null && puts == 1;
  }

  private static void abandon(FSDataOutputStream out, Exception why) {
    try {
      out.abort();
    } catch (RuntimeException e) {
      why.addSuppressed(e);
    }
  }

  private static Found whatIsThere(FileSystem fs, Path path, byte[] bytes, IOException first) {
    try (FSDataInputStream in = fs.open(path)) {
      return Arrays.equals(in.readNBytes(bytes.length + 1), bytes) ? Found.OURS : Found.ANOTHERS;
    } catch (FileNotFoundException e) {
      return Found.NOTHING;
    } catch (IOException e) {
      first.addSuppressed(e);
      return Found.UNKNOWN;
    }
  }

  private static FileAlreadyExistsException lostTheRace(Path path, IOException cause) {
    FileAlreadyExistsException lost = new FileAlreadyExistsException(path.toString());
    lost.initCause(cause);
    return lost;
  }

  private static IOException joined(IOException first, IOException next) {
    if (first == null) {
      return next;
    }
    if (first != next) {
      first.addSuppressed(next);
    }
    return first;
  }

  /** A cancelled job must end; time-outs of sockets are interruptions by inheritance only. */
  private static boolean isInterruption(IOException e) {
    return Thread.currentThread().isInterrupted()
        || e.getClass() == InterruptedIOException.class
        || e instanceof ClosedByInterruptException;
  }

  private static boolean isDenied(IOException failure) {
    return failure instanceof AccessDeniedException || status(failure) == 403;
  }

  private static boolean mayHelpToRepeat(IOException failure) {
    int status = status(failure);
    return switch (status) {
      case 404 -> !(failure instanceof UnknownStoreException); // else a multipart upload that another ended
      case NO_ANSWER -> !isDenied(failure); // S3A's word for credentials it could not get, too
      case 408, 409, 412, 429 -> true; // 412: deleted since
      case 501 -> false;
      default -> status >= 500;
    };
  }

  /** The HTTP status that S3 answered, found anywhere in the chain of causes, since S3A may wrap it more than once. */
  private static int status(Throwable failure) {
    int depth = 0;
    for (Throwable t = failure; t != null && depth < 20; t = t.getCause(), depth++) {
      if (t instanceof RemoteFileChangedException) {
        return 412;
      }
      if (t instanceof AwsServiceException) {
        return ((AwsServiceException) t).statusCode();
      }
    }
    return NO_ANSWER;
  }

  /** Doubling, and at random within it, so that writers who met once do not meet again. */
  private static void waitBefore(int attempt, IOException first) throws IOException {
    long longest = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS << Math.min(attempt, 10));
    try {
      Thread.sleep(ThreadLocalRandom.current().nextLong(longest / 2, longest + 1));
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      InterruptedIOException stopped = new InterruptedIOException("stopped while waiting to commit again");
      stopped.initCause(first);
      throw stopped;
    }
  }
}
