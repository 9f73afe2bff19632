"""Starts a job by its name, where the engine keeps no definitions of jobs."""
