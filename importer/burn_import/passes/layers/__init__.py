"""Passes that recognize linear layers and biases."""
