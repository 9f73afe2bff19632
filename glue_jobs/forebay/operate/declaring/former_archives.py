"""Copies of moved files in places that the declarations no longer name: a replay would not look for them there.

In: a lake, and a service. Out: a sentence for each such place, with what to declare.
"""

from __future__ import annotations

from forebay.counted import counted
from forebay.declaration.service import Service
from forebay.lake.layout import AFTER_LOAD
from forebay.operate.lake_view import LakeView, quoted

BETWEEN = 2
"""The slashes between the bucket, the key and the file's id in the address of a copy."""


def unnamed_archives(lake: str, service: Service) -> list[str]:
    of_service = ", ".join(map(quoted, (service.name, *service.shares_files_with)))
    below = f"length(bucket) + length(key) + length(file_id) + {BETWEEN}"
    places = f"select left(place, length(place) - ({below})) archive, file_id from t"
    moved = f"{places} where action = 'moved' and service in ({of_service})"
    counts = f"select archive, count(distinct file_id) files from ({moved}) x group by archive order by archive"
    found = {row["archive"]: row["files"] for row in LakeView(lake).query(AFTER_LOAD, counts)}
    return [
        f"service: after_load moved {counted(files, 'file')} to {archive}, where a replay no longer looks: "
        f'add "{archive}" to former_archives'
        for archive, files in found.items()
        if archive not in service.archives
    ]
