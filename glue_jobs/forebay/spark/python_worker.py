"""The Python processes that plan and run our reading, without their unnecessary work.

PySpark puts itself on their path as a zip archive, and clears their import caches before each use. Up to Python 3.12 the
archive's directory is then read again for each imported package. That is a tenth of a second of work for each plan and each
task. After each use it makes them collect garbage among all their objects, although nearly all belong to modules that stay.
These two cost about as much as the other work of a small batch.
"""

from __future__ import annotations

import gc
import sys
import zipimport
from functools import cache


def is_repeated() -> bool:
    """Whether Spark tries the task of this process again, because an earlier attempt failed."""
    from pyspark import TaskContext

    task = TaskContext.get()
    return task is not None and task.attemptNumber() > 0


def spare_repeats() -> None:
    """Makes this process cheap to reuse. Call it at each use, after all imports.

    Modules in archives can still be imported: Python recreates an archive's finder on demand, from the directory that it
    read first. Objects that are created later are still garbage-collected.
    """
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimport.zipimporter):
            del sys.path_importer_cache[path]
    freeze()


@cache
def freeze() -> None:
    """Spares the collector the objects that exist now, which are nearly all of modules. Once a process: to ask Python whether
    objects are frozen makes it count all of them."""
    gc.freeze()
