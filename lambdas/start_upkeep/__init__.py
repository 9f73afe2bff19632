"""Starts a job that keeps the tables in shape, where the engine has no schedules of its own for it."""
