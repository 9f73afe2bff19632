"""Records: JSON text becomes the columns that a table has, and the columns that it will get.

* `shape` counts what values the fields of records had      * `kind` is what a column holds
* `growth` decides from both which columns a table gets      * `name` names of columns that are free
* `number` reads and writes JSON with the original digits
* `walk` conforms one record at a time, and is the definition      * `swift` does the same to thousands at once
* `arrow_parser` parses those, by the rules of `walk`      * `inexact` finds numbers that it would change
* `undeclared` are the fields of those without a declared column
* `conform` puts both together
* `field` finds the value at a path      * `declared` says what it is in its column      * `moment` reads times
* `route` finds the table of a record
* `typed` gives the declared columns of thousands of records at once      * `parsed_numbers` those that Arrow parsed as numbers
* `arrow_type` their types
* `transform` puts them through a declared function      * `apart` does so in a process of its own
* `event_time` of rows within its bounds      * `ids` by which a table leaves out records that came before

No Spark, no S3.
"""
