"""A Spark driver in its own process, told what to do by lines of JSON on standard input; it ends when they end.

Each line is `[verb, {arguments}]` and is answered by one line: `{"value": ...}`, or `{"error": [...], "text": ...}`
with the class names of the error and its causes. The first line out says that the session is up.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

from py4j.protocol import Py4JJavaError

from forebay.errors import InvalidConfiguration
from forebay.lake import safety as lake
from forebay.spark.session import LOG_STORE, session


class Driver:
    def __init__(self, settings: dict[str, str]) -> None:
        self.spark: Any = session("logstore-test", extra=settings)
        self.jvm = self.spark._jvm
        self.hadoop = self.spark._jsc.hadoopConfiguration()

    def configure(self, settings: dict[str, str]) -> None:
        """Takes effect for buckets that this driver has not met yet."""
        for key, value in settings.items():
            self.hadoop.set(key, value)

    def append(self, table: str, times: int, writer: str) -> dict[str, Any]:
        """Ten rows a time."""
        began = time.monotonic()
        for i in range(times):
            rows = self.spark.range(10, numPartitions=1).selectExpr(f"'{writer}' writer", f"{i} turn", "id")
            rows.write.format("delta").mode("append").save(table)
        return {"seconds": round(time.monotonic() - began, 1)}

    def state(self, table: str) -> dict[str, Any]:
        """What a reader finds: rows, distinct rows, the commits of the log, and the transaction ids inside them."""
        rows = self.spark.read.format("delta").load(table)
        log = self.spark.read.json(f"{table}/_delta_log/*.json").where("commitInfo is not null")
        return {
            "rows": rows.count(),
            "distinct": rows.distinct().count(),
            "commits": log.count(),
            "transactions": log.select("commitInfo.txnId").distinct().count(),
        }

    def write(self, path: str, lines: list[str], overwrite: bool = False) -> None:
        """The log store itself, without Delta around it."""
        store = getattr(self.jvm, LOG_STORE)(self.hadoop)
        iterator = self.jvm.java.util.ArrayList()
        for line in lines:
            iterator.add(line)
        store.write(self.jvm.org.apache.hadoop.fs.Path(path), iterator.iterator(), overwrite, self.hadoop)

    def read(self, path: str) -> list[str]:
        store = getattr(self.jvm, LOG_STORE)(self.hadoop)
        return list(store.read(self.jvm.org.apache.hadoop.fs.Path(path), self.hadoop))

    def probe(self, path: str) -> None:
        lake.probe(self.spark, path)


def main() -> None:
    driver = Driver(json.loads(os.environ.get("DRIVER_SETTINGS", "{}")))
    say({"value": "ready"})
    for line in sys.stdin:
        verb, arguments = json.loads(line)
        try:
            say({"value": getattr(driver, verb)(**arguments)})
        except Py4JJavaError as failure:
            say({"error": list(class_names(failure.java_exception)), "text": str(failure.java_exception)})
        except InvalidConfiguration as refused:
            say({"error": ["InvalidConfiguration"], "text": str(refused)})
        except Exception as failure:
            say({"error": [type(failure).__name__], "text": str(failure)})


def class_names(failure: Any) -> Any:
    while failure is not None:
        yield failure.getClass().getName()
        failure = failure.getCause()


def say(answer: dict[str, Any]) -> None:
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
