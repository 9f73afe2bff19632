"""Messages from the queue become files: the first room of the journey, in pure Python.

In goes the body of any message. Out comes a `Reading`. It has the files that the message announces, and the parts that could
not be understood (`refused`). Other events are `Ignored`, with a reason, and counted. A message with anything refused must be
kept with its body. Nothing here raises because of a body.

* `reading` peels the wrappings until single events are left
* `event` reads one event, in S3's own form or EventBridge's
* `debris` knows the objects that frameworks leave behind
* `outcome` the words for what a message can mean
* `filter` says which files are wanted, `glob` which keys fit a glob
* `order` decides which of two versions of a key is the later one
"""

from forebay.notification.filter import Filter
from forebay.notification.order import newer
from forebay.notification.outcome import REASONS, Ignored
from forebay.notification.reading import Reading, read_message

__all__ = ["REASONS", "Filter", "Ignored", "Reading", "newer", "read_message"]
