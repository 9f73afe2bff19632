"""Personal data: what is kept of it is decided on a record's text, before anything else sees the record.

* `text` the personal fields of a record, treated      * `together` those of thousands at once      * `members` where they lie
* `likeness` what a value looks like that was not
* `vault` where the values are kept, encrypted      * `wrapping` keys of theirs      * `keys` of the vault
* `value` what one of their values becomes      * `token` a stand-in for it      * `secret` of the tokens
* `subject` whose record a text is      * `erased` the persons who were erased

No Spark; all but `secret`, `erased`, `keys` and `wrapping` is pure.
"""
