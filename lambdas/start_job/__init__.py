"""Starts a job by its name, now or when its present run has ended."""
