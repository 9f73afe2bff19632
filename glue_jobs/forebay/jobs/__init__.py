"""Jobs, which Glue, EMR and the command line start.

* `ingest` the streaming job      * `declarations` those it works with      * `gate` lets one batch at a time through
* `retry_at_start` held records first      * `failures` in plain words
* `generation` the name of its stream      * `first_batch` that a stream never began
* `service_name` what goes by the name of a service      * `lost_ledger` a lake whose ledger was lost
* `lost_plan` a new stream beside a batch whose plan was deleted
* `withheld` files that S3 did not give are announced again
* `merging` merges beside the batches
* `pacing` how fast it works, for the rules that start it
* `journal` where the events of a job go      * `arrivals` counts new files in health objects
* `troubles` counts tables in trouble, batch by batch
"""
