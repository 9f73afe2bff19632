"""An attempt at a batch: from files to a plan, and from a plan to the ledger. Its declarations do not change.

* `parts` what all attempts of a driver share      * `attempt` one of them
* `beginning` from files to a plan      * `seen` what earlier passes over the files have shown
* `turns` of a batch and a retry that concern the same file
* `carrying_out` from a plan to the ledger
* `ending` the ledger's rows of a batch      * `ended` the ledger, as the list of batches that have ended
* `reporting` what is said about a batch, in the words of `events`
"""
