"""Calls of modules: several ones of one module, with inputs of other sizes."""
