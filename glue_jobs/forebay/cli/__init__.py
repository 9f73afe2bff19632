"""The command line: `forebay ...`. It reads arguments and shows answers; what is done is done in the rooms.

* `main` the entrance, and how errors are shown      * `lake` ingest, stop, accounts
* `tables` what there is and what is declared, `health` how it is      * `schema` columns      * `kept` quarantine, parked
* `upkeep` compact, maintain, reconcile      * `quality` verdicts on expectations      * `show` how answers look
"""
