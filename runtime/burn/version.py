"""The version of the runtime, and of the importer that writes modules for it."""

VERSION = "0.1.0"
__version__ = VERSION
