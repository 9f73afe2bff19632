"""Answers from the lake's own tables, the queue and CloudWatch.

* `accounts` do the numbers add up?      * `files` what the ledger has      * `where` the life of one file
* `record` the record of a row, in its landed file
* `held` quarantined and parked records      * `refused` messages that forebay could not understand
* `quality` verdicts on expectations      * `sql` queries over tables and ledger
* `queue` what waits, and what died; it also sends letters back
* `health` the state of tables      * `history` what happened when, and what operators did
* `wait` until hours are complete      * `capacity` arrivals of the last days
* `lineage` batches as OpenLineage events      * `openlineage` the endpoint that takes them
* `status` how it is going      * `report` hour by hour, as a page
"""
