"""Comparison of two models: structure, inputs and outputs, weights."""
