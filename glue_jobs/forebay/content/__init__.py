"""Fetches the contents of files: the bytes of objects in S3 become JSON documents, each with its line and position.

In go the files of a batch. Out come rows (`rows` is the contract): documents, and refused records with their reason and text.
Each piece of a file has one end row, with its result. One GET per file, many at once. It is pure Python and Arrow.

* `limits` how much is taken on, and taken at all      * `ceiling` on a task's memory
* `outcome` the words for what can happen
* `piece` files cut, and dealt to tasks by weight       * `window` many requests at once, within bounds
* `fetch` one GET, its meaning, and trying again
* `unpack`, `snappy` archives, and bombs                * `encoding` everything to UTF-8, places kept
* `formats` CSV, Parquet, Avro and others become JSON      * `splitting` text becomes records
* `elements` records inside documents                   * `exploded` arrays inside records
* `vetting` records that are refused
* `added` fields that a record's text is given
* `signature` what a content is                         * `members` what is packed into a file
* `treated` what is personal does not leave              * `originals` but for the vault
* `end` what became of a piece, and of its file
* `reading` all of that, in order                       * `rows` what leaves
"""
