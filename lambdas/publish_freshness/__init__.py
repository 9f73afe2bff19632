"""Measures how far the lake is behind the queue, also while no job runs."""
