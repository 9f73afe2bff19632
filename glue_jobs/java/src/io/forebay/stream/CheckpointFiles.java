package io.forebay.stream;

import io.forebay.logstore.S3ConditionalLogStore;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream;
import org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager;

/**
 * The files of a stream's checkpoint on S3, each with one PUT that S3 refuses where the file exists already.
 *
 * <p>Spark writes a file aside and renames it. On S3 a rename is a copy and a deletion, with looks before each: twelve requests,
 * one after the other, and two such files for each batch. Here the contents wait in memory, and nothing is there before
 * {@code close()}, so a driver that dies leaves no half of a file and no file aside.
 *
 * <p>In folders, and on file systems that cannot create conditionally, a file is written aside and renamed.
 */
public final class CheckpointFiles extends FileSystemBasedCheckpointFileManager {

  /** Made by Spark, as {@code spark.sql.streaming.checkpointFileManagerClass}. */
  public CheckpointFiles(Path path, Configuration conf) {
    super(path, conf);
  }

  @Override
  public CancellableFSDataOutputStream createAtomic(Path path, boolean overwriteIfPossible) {
    try {
      if (overwriteIfPossible || !fs().hasPathCapability(path, S3ConditionalLogStore.CONDITIONAL_CREATE)) {
        return super.createAtomic(path, overwriteIfPossible);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return new OnePut(fs(), path);
  }

  private static final class OnePut extends CancellableFSDataOutputStream {
    private final FileSystem fs;
    private final Path path;
    private boolean ended;

    OnePut(FileSystem fs, Path path) {
      super(new ByteArrayOutputStream());
      this.fs = fs;
      this.path = path;
    }

    @Override
    public void close() throws IOException {
      if (ended) {
        return;
      }
      ended = true;
      flush();
      OutputStream written = underlyingStream();
      try {
        S3ConditionalLogStore.createOnce(fs, path, ((ByteArrayOutputStream) written).toByteArray());
      } catch (java.nio.file.FileAlreadyExistsException there) {
        FileAlreadyExistsException inHadoopsWords = new FileAlreadyExistsException(path.toString());
        inHadoopsWords.initCause(there);
        throw inHadoopsWords; // for which Spark says that two streams use one checkpoint
      }
    }

    @Override
    public void cancel() {
      ended = true;
    }
  }
}
