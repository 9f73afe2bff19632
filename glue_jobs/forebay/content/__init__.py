"""Fetches the contents of files: the bytes of objects in S3 become JSON documents, each with its line and position.

In go the files of a batch. Out come rows (`rows` is the contract): documents, and refused records with their reason and text.
Each piece of a file has one end row, with its result. One GET per file, many at once. It is pure Python and Arrow.

* `limits` how much is taken on, and taken at all      * `ceiling` on a task's memory
* `outcome` the words for what can happen
* `piece` files cut, and dealt to tasks by weight       * `window` many requests at once, within bounds
* `fetch` one GET, its meaning, and trying again        * `ranges` the lines that belong to a part of a large file
* `unpack`, `snappy` archives, and bombs                * `encoding` everything to UTF-8, places kept
* `lines`, `skeleton`, `structure`, `salvage`, `split` text into records: by lines, by brackets, around broken lines
* `elements` records inside documents                   * `exploded` arrays inside records
* `vetting` records that are refused
* `added` fields that a record's text is given
* `signature` what a content is                         * `parts` contents of any format, as `part`s with their records
* `fields`, `delimited` CSV, TSV and plain lines        * `parquet`, `avro` their rows
* `members` what is packed into a file                  * `json_text`, `avro_values` columns, and bytes of Avro, become JSON
* `treated` what is personal does not leave              * `originals` but for the vault
* `end` what became of a piece, and of its file
* `reading` all of that, in order                       * `rows` what leaves
"""
