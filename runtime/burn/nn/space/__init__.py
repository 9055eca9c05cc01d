"""Layers without parameters that change shapes: padding, resizing, pooling."""
