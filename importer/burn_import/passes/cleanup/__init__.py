"""Passes that remove, fold or deduplicate nodes."""
