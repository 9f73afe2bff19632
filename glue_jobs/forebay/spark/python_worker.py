"""The Python processes in which Spark plans and runs our reading, and what they would otherwise do in vain.

PySpark puts itself on their path as a zip archive, and has them forget before each use what they know of their path. Up to
Python 3.12 the archive's directory is then read again for each imported package. That is a tenth of a second of work for each
plan and each task. After each use it has them look for garbage through every object that they hold, nearly all of which are
modules that stay. A small batch has little more work than these two.
"""

from __future__ import annotations

import gc
import sys
import zipimport

__all__ = ["spare_repeats"]


def spare_repeats() -> None:
    """Makes this process cheap to use again. To be said at each use, when all is imported.

    What archives hold can still be imported: the finder of an archive is made again when it is wanted, from the directory
    that was read first. And what is made later is still looked through for garbage.
    """
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimport.zipimporter):
            del sys.path_importer_cache[path]
    if not gc.get_freeze_count():
        gc.freeze()
