"""Layers with quantized weights, inputs or results."""
