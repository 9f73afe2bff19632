"""Personal data: a record's text is treated before anything else sees the record.

* `text` the personal fields of a record, treated      * `together` those of thousands at once      * `members` where they are
* `likeness` untreated values that look personal
* `vault` where the values are kept, encrypted      * `wrapping` keys of theirs      * `keys` of the vault
* `value` the treatment of one value      * `token` a stand-in for it      * `secret` of the tokens
* `subject` the subject of a record      * `erased` the subjects who were erased
* `known_secret` whether it is the secret of the lake's tokens

No Spark; all but `secret`, `erased`, `known_secret`, `keys` and `wrapping` is pure.
"""
