"""moto's CloudFormation, so far completed that the service's synthesized template deploys into it unchanged.

`engine` teaches moto to make resources of more types, and patches how it handles stacks; `rollback` handles a stack whose
creation fails, and `importing` one that takes over what exists. `kinds` are those types, each made by the public API's own
call; `buckets` says a bucket's properties in the words of S3's API, `api` a resource's numbers.
"""
