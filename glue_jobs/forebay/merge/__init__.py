"""Merge: changes become the current state of their keys.

* `winners` which change wins: Spark computes what `tests/merge/order.py` defines in plain Python
* `difference` which data files came to the log and left it      * `log_rows` their rows
* `state` the state and its tombstones, and their commits      * `history` the same with all versions of a key
* `partial` the same where a change says only what it changes     * `snapshot` the same of snapshots
* `derived` a table that is computed from others     * `rollup` the groups of rows that changed, computed again
* `step` from one version of the log to another      * `literals` values by which Delta passes over files
* `trouble` why a state stays behind      * `current` whether a state has all changes
* `lag` how far a state is behind      * `job` all states of a lake      * `events` of a merge
"""
