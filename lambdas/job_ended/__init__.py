"""Tells a person that a job failed, and why."""
