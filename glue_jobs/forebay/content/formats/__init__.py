"""Formats of files: each becomes JSON documents.

* `parts` contents of any format, as a `part` with their records
* `fields`, `delimited` CSV, TSV and plain lines
* `parquet`, `avro` their rows      * `json_text`, `avro_values` columns, and bytes of Avro, become JSON
"""
