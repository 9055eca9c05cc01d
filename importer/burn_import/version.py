"""The version of the importer, which the generated files name."""

VERSION = "0.1.0"
__version__ = VERSION
#: The oldest burn-runtime that has all that generated modules call.
OLDEST_RUNTIME = "0.1.0"
