"""Build-system hooks; each runs the same import pipeline as the command line."""
