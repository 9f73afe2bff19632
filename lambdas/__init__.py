"""Small functions between the services: boto3 and the standard library, never Spark. README.md says what wakes each and why."""
