"""The jobs in the environments of Glue and EMR: `make test-cluster`.

* `glue_python` makes an environment with just what Glue has      * `cluster` is a master and two workers, and submits to them
* `relocatable_python` fetches an interpreter that was built elsewhere
* `test_cluster` has the stories: a drain, a compaction, and an executor that is killed in the middle of a batch
* `test_emr_environment` starts the environment for EMR clean
"""
