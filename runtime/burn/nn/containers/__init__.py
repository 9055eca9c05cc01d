"""Modules that contain other modules or parameters, as lists or by name."""
