"""Passes that recognise activation functions from their formulas."""
