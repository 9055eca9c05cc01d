"""A model's file to a module in this process."""

from __future__ import annotations

import hashlib
import itertools
import linecache
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from burn_import.options import Options

if TYPE_CHECKING:
    from burn.nn import Module
    from burn_import.pipeline import Compiled
    from burn_ir.types import Array

_numbers = itertools.count(1)


def load(
    path: str | Path,
    options: Options | None = None,
    *,
    operators: Sequence[str] = (),
) -> Module:
    """The model in ``path`` with its weights, compiled and ready to call.

    The generated source is executed as a module of its own, which tracebacks and
    ``inspect.getsource`` know; no file is written. It is the source that
    ``burn-import`` writes with the same ``options``, and gives the same bits. Weights
    are taken from the mapped file. ``operators`` names modules that declare operators
    of your own.

    The model can be pickled and unpickled in this process. In another one there is no
    such module: write it to a file if it is to be sent, or send its weights.

    Raises:
        WrongOptions: the options contradict themselves or the model.
        UnreadableFile: the file is no model that can be read.
        UnsupportedModel: it uses what is not supported; everything is listed.
        InvalidModel: it contradicts itself or the specification.
        InternalError: a defect of the importer, with what may help.
    """
    from burn_import.pipeline import import_model
    from burn_import.transform import WrongOptions

    options = options or Options()
    options = replace(options, operators=(*options.operators, *operators))
    if options.target != "burn":
        raise WrongOptions(
            f"expected the target burn to load a model here, got {options.target!r}"
        )
    return _executed(import_model(path, options))


def _executed(compiled: Compiled) -> Module:
    """The model of a compiled module, which is in ``sys.modules`` from now on."""
    from burn_import.instantiate import execute

    # Another process gives the same number to another model: a pickle must not fit it.
    digest = hashlib.sha256(compiled.text.encode("ascii")).hexdigest()[:8]
    name = f"burn_import.loaded_{next(_numbers)}_{digest}"
    filename = f"<{name}>"
    module = ModuleType(name)
    module.__file__ = filename
    lines = compiled.text.splitlines(keepends=True)
    linecache.cache[filename] = (len(compiled.text), None, lines, filename)
    sys.modules[name] = module
    done = False
    try:
        execute(compiled.text, module)
        model: Module = getattr(module, compiled.class_name)()
        model.load_state_dict(
            {key: _as_recorded(array) for key, array in compiled.weights}
        )
        done = True
    finally:
        if not done:
            del sys.modules[name], linecache.cache[filename]
    return model


def _as_recorded(array: Array) -> Array:
    """``array`` laid out as a record has it: row by row and aligned.

    Sums are rounded in the order of memory, so that a loaded model gives the same bits
    as one that was written. What a file holds that way is used where it is.
    """
    import numpy as np

    return np.require(array, requirements=["C_CONTIGUOUS", "ALIGNED"])
