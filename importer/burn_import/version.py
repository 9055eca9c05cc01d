"""The version of the importer, which the generated files name."""

VERSION = "0.1.0"
__version__ = VERSION
