"""Passes that recognise linear layers and biases."""
