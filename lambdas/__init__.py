"""Small functions between the services: boto3 and powertools, never Spark. README.md says what wakes each and why."""
