"""Passes that make fewer steps of several."""
