"""Commands that change nothing in the lake.

* `status` how it is going      * `report` as a page      * `history` what happened when
* `accounts` do the sums hold?      * `health` of the tables      * `quality` verdicts on expectations      * `query` SQL
* `export` what changed, for other tools      * `try_out` what would become of sample files
* `where` a file or a row came from      * `wait` until hours are complete      * `plan_capacity` what a freshness takes
* `lineage` the batches, for OpenLineage
* `doctor` can the deployed service work?
"""
