"""Our class in the JVM that calls Delta Kernel, and conversions of lists, maps and Hadoop's settings.

In: a session's JVM. Out: `Java`, with the classes that `kernel` uses.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from forebay.address import S3_SCHEMES

LOG_STORE_SCHEMES = (*S3_SCHEMES, "abfs", "abfss", "gs", "hdfs", "file")


class Java:
    """Classes, found once: each dot in `jvm.io.forebay.table.KernelLog` searches the class path."""

    def __init__(self, jvm: Any) -> None:
        self.log = jvm.io.forebay.table.KernelLog
        self._hash_map = jvm.java.util.HashMap
        self._empty_map = self._hash_map()

    def map_of(self, items: Mapping[str, str]) -> Any:
        made = self._hash_map() if items else self._empty_map
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
