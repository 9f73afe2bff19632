"""The engine of the jobs: Glue, or EMR Serverless with the same few calls."""
