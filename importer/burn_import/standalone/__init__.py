"""Modules that need NumPy alone, with the used parts of the runtime in them."""

from burn_import.standalone.bundle import standalone as standalone
