"""Modules that need only NumPy, with the used parts of the runtime included."""

from burn_import.standalone.bundle import standalone as standalone
