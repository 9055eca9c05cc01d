"""Modules for the quantizers that surround the layers of a quantized model."""
