"""The command ``burn-import``."""

from burn_import.cli.command import main

__all__ = ["main"]
