"""Gradients, beside differences of values in float64."""
