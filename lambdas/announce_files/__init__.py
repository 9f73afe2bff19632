"""Announces files again."""
