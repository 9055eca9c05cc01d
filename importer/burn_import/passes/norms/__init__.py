"""Passes that recognize normalization layers."""
