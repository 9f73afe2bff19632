"""Spark: the session and its settings, its Python workers, and the versions that everything is pinned to.

* `runtime` the pinned versions      * `libraries` of the JVM, fetched once
* `session` the settings for Glue, EMR and a laptop
* `machine` the cores and the memory of a laptop      * `jvm` of a local session, and its end
* `python_worker` start-up work that each Python worker need not repeat
* `stock` is a job's look at its start whether all that it needs is there
* `java_failure` why the JVM threw      * `signals` turn an interrupt or a termination into a clean stop
"""
