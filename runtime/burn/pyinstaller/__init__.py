"""The hooks of PyInstaller for ``burn``; the entry point ``pyinstaller40``."""

from pathlib import Path


def hook_dirs() -> list[str]:
    """The folder of the hook, for PyInstaller."""
    return [str(Path(__file__).parent)]
