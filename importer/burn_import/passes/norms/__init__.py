"""Passes that recognise normalisation layers."""
