package io.forebay.table;

import io.delta.kernel.Operation;
import io.delta.kernel.Snapshot;
import io.delta.kernel.Table;
import io.delta.kernel.Transaction;
import io.delta.kernel.TransactionBuilder;
import io.delta.kernel.TransactionCommitResult;
import io.delta.kernel.data.ColumnVector;
import io.delta.kernel.defaults.engine.DefaultEngine;
import io.delta.kernel.engine.Engine;
import io.delta.kernel.exceptions.TableNotFoundException;
import io.delta.kernel.expressions.Column;
import io.delta.kernel.hook.PostCommitHook;
import io.delta.kernel.internal.SnapshotImpl;
import io.delta.kernel.internal.actions.SingleAction;
import io.delta.kernel.internal.types.DataTypeJsonSerDe;
import io.delta.kernel.internal.util.VectorUtils;
import io.delta.kernel.transaction.UpdateTableTransactionBuilder;
import io.delta.kernel.types.StringType;
import io.delta.kernel.utils.CloseableIterable;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;

/**
 * The logs of tables through Delta Kernel, in one call for each step.
 *
 * <p>Python reaches the JVM through a socket. A call takes a tenth of a millisecond, as does letting go of its answer. The
 * builders of Kernel take forty calls for the first commit of a table, and a batch may make a thousand tables.
 *
 * <p>Exceptions are Kernel's own, for the caller to tell apart by their class.
 */
public final class KernelLog {

  private static final String ENGINE = "forebay";

  /** Conflicts and hiccups of one commit. Kernel's own number is 200, without a pause, also where writing is forbidden. */
  private static final int RETRIES = 20;

  private final Configuration conf;
  private final LogFiles files;
  private final Engine engine;

  public KernelLog(Configuration conf) {
    this.conf = conf;
    this.files = new LogFiles(conf);
    this.engine = DefaultEngine.create(files);
  }

  /** The newest version of the table; null where there is none. */
  @SuppressWarnings("deprecation") // S3A answers `isDirectory` by one listing; for `exists` it looks for an object first.
  public Snapshot newest(String path) throws IOException {
    // To ask first is cheaper than an exception of Kernel.
    Path log = new Path(path, "_delta_log");
    files.forget(log);
    if (!log.getFileSystem(conf).isDirectory(log)) {
      return null;
    }
    try {
      return Table.forPath(engine, path).getLatestSnapshot(engine);
    } catch (TableNotFoundException gone) {
      return null;
    }
  }

  /** The last version of this application's transactions that is in; -1 for none. */
  public long lastVersion(SnapshotImpl seen, String app) {
    return seen.getLatestTransactionVersion(engine, app).orElse(-1L);
  }

  /** Makes the table, with these actions as its first commit. Columns and actions come one a line. */
  public Made create(
      String path,
      String schema,
      String partitionColumns,
      String clusterColumns,
      Map<String, String> properties,
      String app,
      long version,
      String actions) {
    TransactionBuilder builder =
        Table.forPath(engine, path).createTransactionBuilder(engine, ENGINE, Operation.CREATE_TABLE);
    if (clusterColumns.isEmpty()) {
      builder = builder.withPartitionColumns(engine, lines(partitionColumns));
    } else {
      List<Column> columns = lines(clusterColumns).stream().map(Column::new).collect(Collectors.toList());
      builder = builder.withClusteringColumns(engine, columns);
    }
    Transaction made =
        builder
            .withSchema(engine, DataTypeJsonSerDe.deserializeStructType(schema))
            .withTableProperties(engine, properties)
            .withTransactionId(engine, app, version)
            .withMaxRetries(RETRIES)
            .build(engine);
    return committed(made, actions);
  }

  /** Commits the actions behind whatever others have committed since the table was seen. */
  public Made append(Snapshot seen, String app, long version, String actions) {
    return committed(
        seen.buildUpdateTableTransaction(ENGINE, Operation.WRITE)
            .withTransactionId(app, version)
            .withMaxRetries(RETRIES)
            .build(engine),
        actions);
  }

  /** Commits the actions and properties only if nobody has committed since the table was seen. */
  public Made change(Snapshot seen, Map<String, String> properties, String actions) {
    UpdateTableTransactionBuilder builder = seen.buildUpdateTableTransaction(ENGINE, Operation.WRITE).withMaxRetries(0);
    if (!properties.isEmpty()) {
      builder = builder.withTablePropertiesAdded(properties);
    }
    return committed(builder.build(engine), actions);
  }

  private Made committed(Transaction transaction, String actions) {
    ColumnVector texts = VectorUtils.buildColumnVector(lines(actions), StringType.STRING);
    return new Made(
        transaction.commit(
            engine,
            CloseableIterable.inMemoryIterable(
                engine.getJsonHandler().parseJson(texts, SingleAction.FULL_SCHEMA, Optional.empty()).getRows())));
  }

  /** A list would take Python a call for each element. */
  private static List<String> lines(String text) {
    return text.isEmpty() ? List.of() : List.of(text.split("\n"));
  }

  /** A commit that is in. */
  public final class Made {

    private final TransactionCommitResult result;

    private Made(TransactionCommitResult result) {
      this.result = result;
    }

    /** Its version, and the types of the work that Kernel leaves to its users, with a blank between them. */
    public String told() {
      return result.getVersion()
          + result.getPostCommitHooks().stream().map(hook -> " " + hook.getType()).collect(Collectors.joining());
    }

    /** The table with the commit; null where Kernel does not know it in passing. */
    public Snapshot snapshot() {
      return result.getPostCommitSnapshot().orElse(null);
    }

    /** Does the work of this type. */
    public void tidy(String type) throws IOException {
      for (PostCommitHook hook : result.getPostCommitHooks()) {
        if (hook.getType().toString().equals(type)) {
          hook.threadSafeInvoke(engine);
        }
      }
    }
  }
}
