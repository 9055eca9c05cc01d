"""Layers of integers of 8 bits by oneDNN."""
