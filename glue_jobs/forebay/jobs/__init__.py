"""Jobs: what Glue, EMR and the command line start.

* `ingest` the streaming job      * `generation` the name of its stream
* `journal` where the events of a job go      * `arrivals` counts new files in health objects
"""
