"""`forebay doctor`: is the service deployed as it should be, and can it work? Read-only, with boto3 alone.

* `finding` one thing that is wrong, and what fixes it
* `examination` runs the checks, and turns a refusal into a finding      * `policy` what a resource's policy lets in
* `denial` what a bucket's policy denies
* `rights` what the jobs' roles may do, and what the caller may ask      * `account` identity, clock, quotas, bootstrap
* `landing` bucket, topic, subscription      * `queues` policies, redrive, dead letters      * `keys` and who may use them
* `lake` the bucket's policy, lifecycle, encryption      * `jobs` Glue jobs, their code and their last runs
* `logs` log groups, and what the jobs report of their runtime      * `functions` Lambda functions, schedules, rules
* `alarms` alarms, and who hears them      * `probe` sends one object through everything, and finds it in the ledger

A check is a function that takes a `Deployment` and yields findings. It asks AWS, and changes nothing; only `probe` writes.
"""
