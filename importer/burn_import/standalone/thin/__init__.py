"""What stands in standalone modules for parts of the runtime.

The sources here are not imported: they are read, as those of the runtime are.
"""
