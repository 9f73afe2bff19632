"""Where the jobs run: Glue, or EMR Serverless with the same few calls."""
