package io.forebay.local;

import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.DelegateToFileSystem;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FsConstants;
import org.apache.hadoop.fs.FsServerDefaults;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.local.LocalConfigKeys;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * Files of this machine, without a process for each look at one.
 *
 * <p>Hadoop without its native library runs {@code readlink} before each rename and {@code chmod} after each creation. A small
 * batch into a lake in a folder started a hundred processes so. It also writes a checksum beside each file, and renames
 * that as well. Here the JVM itself sets permissions, links are followed, and there are no
 * checksums: Parquet and Delta have their own.
 */
public final class LocalFiles extends LocalFileSystem {

  /** Made by Hadoop, as {@code fs.file.impl}. */
  public LocalFiles() {
    super(new Raw());
    setVerifyChecksum(false);
    setWriteChecksum(false);
  }

  private static final class Raw extends RawLocalFileSystem {

    @Override
    public void setPermission(Path path, FsPermission permission) throws IOException {
      String rights = permission.getUserAction().SYMBOL + permission.getGroupAction().SYMBOL
          + permission.getOtherAction().SYMBOL;
      Files.setPosixFilePermissions(pathToFile(path).toPath(), PosixFilePermissions.fromString(rights));
    }

    @Override
    public FileStatus getFileLinkStatus(Path path) throws IOException {
      return getFileStatus(path);
    }

    @Override
    public boolean supportsSymlinks() {
      return false;
    }
  }

  /** The same files for those who ask Hadoop's other interface: {@code fs.AbstractFileSystem.file.impl}. */
  public static final class Context extends DelegateToFileSystem {

    /** As Hadoop calls it. */
    public Context(URI uri, Configuration conf) throws IOException, java.net.URISyntaxException {
      super(uri, new Raw(), conf, FsConstants.LOCAL_FS_URI.getScheme(), false);
    }

    @Override
    public int getUriDefaultPort() {
      return -1;
    }

    @Override
    @Deprecated
    public FsServerDefaults getServerDefaults() throws IOException {
      return LocalConfigKeys.getServerDefaults();
    }

    @Override
    public boolean isValidName(String name) {
      return true;
    }
  }
}
