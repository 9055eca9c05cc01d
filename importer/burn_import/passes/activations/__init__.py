"""Passes that recognize activation functions from their formulas."""
