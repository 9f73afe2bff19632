"""Starts the compaction job for the tables that need it, and only then."""
