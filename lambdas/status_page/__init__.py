"""Writes a page that says how the service is."""
