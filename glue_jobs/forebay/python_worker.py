"""The Python processes in which Spark runs our tasks, and what they would otherwise do in vain.

PySpark puts itself on their path as a zip archive, and has them forget before each task what they know of their path.
Up to Python 3.12 that means to read the archive's directory again, once for each of its packages that was imported from:
a tenth of a second of work before every task, of which a small batch has little more.
"""

from __future__ import annotations

import sys
import zipimport

__all__ = ["keep_archives"]


def keep_archives() -> None:
    """Spares this process to read again the archives that it has imported from. What they hold, it can still import: the
    finder of an archive is made again when it is wanted, from the directory that was read first."""
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimport.zipimporter):
            del sys.path_importer_cache[path]
