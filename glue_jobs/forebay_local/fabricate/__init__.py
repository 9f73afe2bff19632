"""Notifications made to order, for the tests and for `forebay local feed --chaos`.

moto's notifications lack sequencers and version ids and never misbehave, so we write our own.

* `files` makes files: plausible ones, and the versions of one key
* `message` makes one honest message about files, in any shape in which it may come off the queue
* `chaos` makes a whole feed that repeats, reorders, delays, drops and spoils, and says exactly what must come of it
"""

from forebay_local.fabricate.chaos import GARBAGE, Announcement, Chaos, Message
from forebay_local.fabricate.files import file_named, versions
from forebay_local.fabricate.message import Wrapping, body, setup_event

__all__ = [
    "GARBAGE",
    "Announcement",
    "Chaos",
    "Message",
    "Wrapping",
    "body",
    "file_named",
    "setup_event",
    "versions",
]
