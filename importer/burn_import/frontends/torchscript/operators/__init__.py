"""Operator calls in the code of an archive."""
