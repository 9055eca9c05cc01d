"""The version of the runtime, and of the importer that writes modules for it."""

import re
import sys

VERSION = "0.1.0"
__version__ = VERSION


def require_version(oldest: str) -> None:
    """Check that this version is ``oldest`` or newer; generated modules call it.

    Raises:
        ImportError: it is older; names the module, both versions and the remedy.
    """
    if _numbers(VERSION) >= _numbers(oldest):
        return
    module = sys._getframe(1).f_globals.get("__name__", "this module")
    raise ImportError(
        f"{module} needs burn-runtime {oldest} or newer, got {VERSION}: "
        f"pip install --upgrade 'burn-runtime>={oldest}'"
    )


def _numbers(version: str) -> tuple[int, ...]:
    """Return the numbers that a version begins with: (0, 2) for ``"0.2.dev1"``."""
    match = re.match(r"\d+(\.\d+)*", version)
    return tuple(map(int, match[0].split("."))) if match else ()
