"""Believable game telemetry, dropped into a landing bucket, with an exact account of what was dropped.

* `telemetry` writes the records, and spoils some       * `tally` defines the numbers of the account
* `plan` puts records into files, pure: the same recipe gives the same files
* `landing` puts the files, and sends the messages of `--chaos`

It is realistic: one big game and many small ones; gz and plain; files without a last newline; files
that carry several games; keys with blanks, plus signs and letters outside ASCII; late records; lines cut off, pages of
HTML, bytes that are not text; fields of the wrong type; records without a game and of games that nobody knows; the same
file put twice. Nothing in it is about a real person.
"""

from forebay_local.feed.landing import drop, send_messages
from forebay_local.feed.plan import SPAN, DroppedFile, Mix, Recipe, plan
from forebay_local.feed.tally import Dropped, Tally
from forebay_local.feed.telemetry import game_names

__all__ = ["SPAN", "Dropped", "DroppedFile", "Mix", "Recipe", "Tally", "drop", "game_names", "plan", "send_messages"]
