"""Readers of model files, each of which returns a :class:`burn_ir.RawModel`."""
