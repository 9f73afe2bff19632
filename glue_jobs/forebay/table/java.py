"""Kernel's classes in the JVM, and conversions of lists, maps and Hadoop's settings.

In: a session's JVM. Out: `Java`, with the classes and constants that `kernel` uses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from forebay.address import S3_SCHEMES

__all__ = ["Java", "hadoop_conf", "items_of", "java_of"]

LOG_STORE_SCHEMES = (*S3_SCHEMES, "abfs", "abfss", "gs", "hdfs", "file")


class Java:
    """Kernel's classes and constants, found once: each dot in `jvm.io.delta.kernel.Table` searches the class path."""

    def __init__(self, jvm: Any) -> None:
        kernel = jvm.io.delta.kernel
        self.default_engine = kernel.defaults.engine.DefaultEngine
        self.path = jvm.org.apache.hadoop.fs.Path
        self.table = kernel.Table
        self.create_table, self.write = kernel.Operation.CREATE_TABLE, kernel.Operation.WRITE
        self.iterable = kernel.utils.CloseableIterable
        self.column = kernel.expressions.Column
        self.string = kernel.types.StringType.STRING
        self.schema_json = kernel.internal.types.DataTypeJsonSerDe
        self.vectors = kernel.internal.util.VectorUtils
        self.action_schema = kernel.internal.actions.SingleAction.FULL_SCHEMA
        self.nothing = jvm.java.util.Optional.empty()
        self._array_list, self._hash_map = jvm.java.util.ArrayList, jvm.java.util.HashMap

    def list_of(self, items: Sequence[Any]) -> Any:
        made = self._array_list()
        for item in items:
            made.add(item)
        return made

    def map_of(self, items: Mapping[str, str]) -> Any:
        made = self._hash_map()
        for key, value in items.items():
            made.put(key, value)
        return made


@lru_cache(maxsize=1)
def java_of(jvm: Any) -> Java:
    """The classes of the process's only JVM: one search of the class path, however many lakes it writes."""
    return Java(jvm)


def items_of(java_list: Any) -> list[Any]:
    """Without Python's own loop over a Java list, which ends with an exception from the JVM."""
    return [java_list.get(i) for i in range(java_list.size())]


def hadoop_conf(session: Any) -> Any:
    """The session's, with Spark's choice of log store said in Kernel's words: it does not read Delta's."""
    conf = session._jsparkSession.sessionState().newHadoopConf()
    for scheme in LOG_STORE_SCHEMES:
        chosen = session.conf.get(f"spark.delta.logStore.{scheme}.impl", None)
        if chosen:
            conf.set(f"io.delta.kernel.logStore.{scheme}.impl", chosen)
    return conf
