"""Passes over reshapes, transposes, slices and index arithmetic."""
