"""PyInstaller hooks for ``burn``; the entry point ``pyinstaller40``."""

from pathlib import Path


def hook_dirs() -> list[str]:
    """Return the folder of the hook, for PyInstaller."""
    return [str(Path(__file__).parent)]
