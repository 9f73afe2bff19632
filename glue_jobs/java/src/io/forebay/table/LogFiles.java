package io.forebay.table;

import io.delta.kernel.defaults.engine.fileio.InputFile;
import io.delta.kernel.defaults.engine.fileio.OutputFile;
import io.delta.kernel.defaults.engine.fileio.SeekableInputStream;
import io.delta.kernel.defaults.engine.hadoopio.HadoopFileIO;
import io.delta.kernel.defaults.engine.hadoopio.HadoopInputFile;
import io.delta.kernel.defaults.engine.hadoopio.HadoopOutputFile;
import io.delta.kernel.defaults.engine.hadoopio.HadoopSeekableInputStream;
import io.delta.kernel.utils.CloseableIterator;
import io.delta.kernel.utils.FileStatus;
import io.forebay.logstore.S3ConditionalLogStore;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Options.OpenFileOptions;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.util.functional.FutureIO;

/**
 * The files of logs for Delta Kernel, with fewer requests to S3. A batch waits for them one after the other, and Kernel asks S3
 * for what is known already:
 *
 * <ul>
 *   <li>It opens a commit, whose size it knows, and S3A then looks for the size. A commit never changes.
 *   <li>It looks for the size and the time of a commit that it has just made.
 *   <li>It makes folders, which S3 does not have: four requests.
 * </ul>
 *
 * <p>Kernel reads a commit again by a snapshot that it remembers, though the table may have been deleted and created again.
 * Then another commit has its name, perhaps of another size: {@link CommitReplaced}. A commit is known by how it begins,
 * since its first action holds the time of the commit, or a random id.
 *
 * <p>Other files work as Kernel has them, and so do commits of other file systems but for that.
 */
final class LogFiles extends HadoopFileIO {

  private static final String COMMIT = ".json";

  private static final int HEAD_BYTES = 512;
  private static final int LOGS = 10_000;

  /** The commit is another one than that which was read, or made, under this name. */
  static final class CommitReplaced extends IOException {
    private static final long serialVersionUID = 1L;

    CommitReplaced(Path path) {
      super(path + " is another commit than before: the table was deleted and created again");
    }
  }

  private final Configuration conf;
  private final Map<String, FileStatus> justMade = new ConcurrentHashMap<>();

  /** How the commits of each log begin, by log and by name. Those of a log that is listed again are forgotten. */
  private final Map<String, Map<String, UUID>> heads =
      Collections.synchronizedMap(
          new LinkedHashMap<>(16, 0.75f, true) {
            private static final long serialVersionUID = 1L;

            @Override
            protected boolean removeEldestEntry(Map.Entry<String, Map<String, UUID>> eldest) {
              return size() > LOGS;
            }
          });

  LogFiles(Configuration conf) {
    super(conf);
    this.conf = conf;
  }

  @Override
  public boolean mkdirs(String path) throws IOException {
    return hasNoFolders(path) || super.mkdirs(path);
  }

  @Override
  public InputFile newInputFile(String path, long size) {
    try {
      return path.endsWith(COMMIT)
          ? new CommitMade(fileSystem(path), new Path(path), hasNoFolders(path) ? size : 0)
          : super.newInputFile(path, size);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @Override
  public OutputFile newOutputFile(String path) {
    try {
      return path.endsWith(COMMIT) ? new Commit(path, hasNoFolders(path)) : super.newOutputFile(path);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Kernel asks once for each commit that it makes. */
  @Override
  public FileStatus getFileStatus(String path) throws IOException {
    FileStatus made = justMade.remove(path);
    return made != null ? made : super.getFileStatus(path);
  }

  private boolean hasNoFolders(String path) throws IOException {
    return fileSystem(path).hasPathCapability(new Path(path), S3ConditionalLogStore.CONDITIONAL_CREATE);
  }

  private FileSystem fileSystem(String path) throws IOException {
    return new Path(path).getFileSystem(conf);
  }

  /** The log is going to be listed: whatever is in it now counts. */
  void forget(Path log) {
    heads.remove(folder(log));
  }

  private Map<String, UUID> headsBeside(Path commit) {
    return heads.computeIfAbsent(folder(commit.getParent()), log -> new ConcurrentHashMap<>());
  }

  /** The same for all spellings of an address. */
  private static String folder(Path log) {
    return log.toUri().getAuthority() + log.toUri().getPath();
  }

  private final class CommitMade extends HadoopInputFile {
    private final FileSystem fs;
    private final Path path;
    private final long size;

    /** A size of 0 is not known. */
    CommitMade(FileSystem fs, Path path, long size) {
      super(fs, path, size);
      this.fs = fs;
      this.path = path;
      this.size = size;
    }

    @Override
    public SeekableInputStream newStream() throws IOException {
      FSDataInputStream in = size > 0 ? ofKnownSize() : fs.open(path);
      try {
        byte[] head = in.readNBytes(HEAD_BYTES);
        UUID now = UUID.nameUUIDFromBytes(head);
        UUID before = headsBeside(path).putIfAbsent(path.getName(), now);
        if (before != null && !before.equals(now)) {
          throw new CommitReplaced(path);
        }
        return new AfterHead(head, in);
      } catch (IOException | RuntimeException e) {
        in.close();
        throw e;
      }
    }

    private FSDataInputStream ofKnownSize() throws IOException {
      return FutureIO.awaitFuture(
          fs.openFile(path).optLong(OpenFileOptions.FS_OPTION_OPENFILE_LENGTH, size).build());
    }
  }

  /** A stream whose first bytes were read already. Seeking back would make S3 send them again. */
  private static final class AfterHead extends SeekableInputStream {
    private final byte[] head;
    private final FSDataInputStream in;
    private int at = 0;

    AfterHead(byte[] head, FSDataInputStream in) {
      this.head = head;
      this.in = in;
    }

    @Override
    public int read() throws IOException {
      return at < head.length ? head[at++] & 0xff : in.read();
    }

    @Override
    public int read(byte[] into, int offset, int length) throws IOException {
      if (at >= head.length) {
        return in.read(into, offset, length);
      }
      int some = Math.min(length, head.length - at);
      System.arraycopy(head, at, into, offset, some);
      at += some;
      return some;
    }

    @Override
    public void readFully(byte[] into, int offset, int length) throws IOException {
      if (readNBytes(into, offset, length) < length) {
        throw new EOFException();
      }
    }

    @Override
    public long getPos() throws IOException {
      return at < head.length ? at : in.getPos();
    }

    @Override
    public void seek(long position) throws IOException {
      at = (int) Math.min(position, head.length);
      in.seek(Math.max(position, head.length));
    }

    @Override
    public void close() throws IOException {
      in.close();
    }
  }

  private final class Commit extends HadoopOutputFile {
    private final boolean isKept;

    /** Of a commit that is kept Kernel asks for the size and the time. */
    Commit(String path, boolean isKept) {
      super(conf, path);
      this.isKept = isKept;
    }

    @Override
    public void writeAtomically(CloseableIterator<String> lines, boolean overwrite) throws IOException {
      long[] bytes = {0};
      ByteArrayOutputStream head = new ByteArrayOutputStream(HEAD_BYTES);
      super.writeAtomically(
          lines.map(
              line -> {
                byte[] written = (line + "\n").getBytes(StandardCharsets.UTF_8);
                bytes[0] += written.length;
                head.write(written, 0, Math.min(written.length, HEAD_BYTES - head.size()));
                return line;
              }),
          overwrite);
      Path made = new Path(path());
      headsBeside(made).put(made.getName(), UUID.nameUUIDFromBytes(head.toByteArray()));
      if (isKept) {
        justMade.put(path(), FileStatus.of(path(), bytes[0], System.currentTimeMillis()));
      }
    }
  }
}
