"""When the ingest job runs, and for how long: one freshness in, decisions out. Pure.

* `freshness` the setting, as a text such as `5 min`      * `pace` how fast a service has worked lately
* `waiting` since when files wait
* `rules` whether a run starts, drains, stays on or ends
* `simulation` arrivals through the rules, or through fixed settings: latencies and hours
* `runs` the runs of a simulation      * `plan` what a month of arrivals takes, in minutes and dollars
"""
