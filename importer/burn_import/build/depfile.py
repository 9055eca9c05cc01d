"""Depfiles: the files that an import read, as a rule of Make.

Ninja, CMake and Meson read them, and import again when one of the files changes.
"""

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from burn_import.model_files import model_files
from burn_import.options import Options
from burn_import.output import OutputRefused

#: The first line of a depfile: the target, a colon, and the line's continuation.
_RULE = re.compile(rb"[^\n]+: \\\n")
_ESCAPED = re.compile(r"([ #\\])")


def check_depfile(path: Path) -> None:
    """Check that ``path`` may be written: it is missing, empty or a depfile.

    Raises:
        OutputRefused: another file is in the way.
    """
    if not path.exists():
        return
    if not path.is_file() or not _RULE.match(path.read_bytes() or b"x: \\\n"):
        raise OutputRefused(
            f"expected a depfile to replace, got {path.name!r}, which is none",
            "Pass another name with --depfile.",
        )


def write_depfile(
    path: Path, outputs: Sequence[Path], model: Path, options: Options
) -> None:
    """Write the dependencies of ``outputs``; give these the present time.

    Only the first is a target: Ninja refuses others that its file does not list.

    Make and Ninja run a command again whose outputs are older than its inputs, and an
    import does not write outputs that would not change.

    Raises:
        OSError: it cannot be written.
    """
    from burn.record import atomic_write

    lines = [_escaped(file) for file in read_files(model, options)]
    rule = " \\\n  ".join([f"{_escaped(outputs[0])}:", *lines]) + "\n"
    atomic_write(path, rule.encode("utf-8", "surrogateescape"))
    for output in outputs:
        os.utime(output)


def read_files(model: Path, options: Options) -> list[Path]:
    """Return the files that an import reads: of the model, settings and operators."""
    files = model_files(model, options.hints.config)
    for name in options.operators:
        source = getattr(sys.modules.get(name), "__file__", None)
        if source is not None:
            files.append(Path(source))
    return files


def _escaped(path: Path) -> str:
    """Return a path with the characters escaped that mean something in a rule."""
    return _ESCAPED.sub(r"\\\1", path.as_posix()).replace("$", "$$")
