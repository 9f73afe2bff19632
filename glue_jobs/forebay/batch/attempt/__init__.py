"""An attempt at a batch: from files to a plan, and from a plan to the ledger. Its declarations do not change.

* `takeover` which stream loads the files of a service
* `attempt` one of them, and what all of a driver share
* `beginning` from files to a plan      * `seen` what earlier passes over the files have shown
* `without_plan` tables that have the batch already, although it has no plan
* `turns` of a batch and a retry that concern the same file
* `carrying_out` from a plan to the ledger
* `ending` the ledger's rows of a batch, and the ledger as the list of batches that have ended
* `reporting` what is said about a batch, in the words of `events`
"""
