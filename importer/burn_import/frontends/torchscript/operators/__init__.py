"""Calls of operators in the code of an archive."""
