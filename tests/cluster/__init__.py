"""The environments in which jobs run: `make test-cluster`.

* `glue_python` makes an environment with just what Glue has      * `test_emr_environment` starts the one for EMR clean
"""
