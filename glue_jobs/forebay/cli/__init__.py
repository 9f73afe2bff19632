"""The command line: `forebay ...`. It reads arguments and shows answers; what is done is done in the rooms.

* `main` the entrance, and how errors are shown      * `lake` ingest, accounts, tables, compact
* `local` the twin      * `demo` the whole story in a minute      * `show` how answers look
"""
