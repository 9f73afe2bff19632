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
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.conf.Configuration;
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
 * <p>Other file systems and other files work as Kernel has them.
 */
final class LogFiles extends HadoopFileIO {

  private static final String COMMIT = ".json";

  private final Configuration conf;
  private final Map<String, FileStatus> justMade = new ConcurrentHashMap<>();

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
      return size > 0 && path.endsWith(COMMIT) && hasNoFolders(path)
          ? new OfKnownSize(fileSystem(path), new Path(path), size)
          : super.newInputFile(path, size);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @Override
  public OutputFile newOutputFile(String path) {
    try {
      return path.endsWith(COMMIT) && hasNoFolders(path) ? new Commit(path) : super.newOutputFile(path);
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

  private static final class OfKnownSize extends HadoopInputFile {
    private final FileSystem fs;
    private final Path path;
    private final long size;

    OfKnownSize(FileSystem fs, Path path, long size) {
      super(fs, path, size);
      this.fs = fs;
      this.path = path;
      this.size = size;
    }

    @Override
    public SeekableInputStream newStream() throws IOException {
      return new HadoopSeekableInputStream(
          FutureIO.awaitFuture(
              fs.openFile(path).optLong(OpenFileOptions.FS_OPTION_OPENFILE_LENGTH, size).build()));
    }
  }

  private final class Commit extends HadoopOutputFile {

    Commit(String path) {
      super(conf, path);
    }

    @Override
    public void writeAtomically(CloseableIterator<String> lines, boolean overwrite) throws IOException {
      long[] bytes = {0};
      super.writeAtomically(
          lines.map(
              line -> {
                bytes[0] += line.getBytes(StandardCharsets.UTF_8).length + 1;
                return line;
              }),
          overwrite);
      justMade.put(path(), FileStatus.of(path(), bytes[0], System.currentTimeMillis()));
    }
  }
}
