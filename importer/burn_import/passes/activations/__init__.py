"""Passes that recognise activation functions in their formulas."""
