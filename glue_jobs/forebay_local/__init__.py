"""Forebay on one machine: the twin, and data to feed it. Never shipped to Glue.

* `twin` the AWS services of a deployed stack, in one local process      * `feed` believable telemetry
* `fabricate` notifications made to order, honest and hostile
* `commands` `forebay local ...`      * `demo` `forebay demo`
"""
