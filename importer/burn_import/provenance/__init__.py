"""Provenance of stored arrays: authored names, owners, keys, trainability."""
