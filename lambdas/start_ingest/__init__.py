"""Starts the ingest job if it should run and does not."""
