"""Branches and loops that are decided when the model runs."""
