"""Import of a model file as a module in this process."""

from __future__ import annotations

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
    path: str | Path, options: Options | None = None, *, operators: Sequence[str] = ()
) -> Module:
    """Return the model in ``path`` with its weights, compiled and ready to call.

    The generated source is executed as a Python module that tracebacks and
    ``inspect.getsource`` can show; no file is written. The source and its results
    are those of ``burn-import`` with the same ``options``. Weights are
    memory-mapped from the file. ``operators`` names modules that declare custom
    operators.

    The model can be pickled and unpickled in this process only, since other
    processes do not have the module: write it to a file to send it, or send its
    weights.

    Raises:
        WrongOptions: the options contradict each other or the model.
        UnreadableFile: the file cannot be read as a model.
        UnsupportedModel: it uses unsupported features; all are listed.
        InvalidModel: it contradicts itself or the specification.
        InternalError: a defect of the importer, with a possible remedy.
    """
    from burn_import.pipeline import import_model
    from burn_import.transform import WrongOptions

    options = options or Options()
    options = replace(options, operators=(*options.operators, *operators))
    if options.target != "burn":
        raise WrongOptions(
            f"expected the target burn to load a model here, got {options.target!r}"
        )
    options = replace(options, embed=False)  # the weights are those of the file
    return _execute_model(import_model(path, options))


def _execute_model(compiled: Compiled) -> Module:
    """Return the model of a compiled module, registered in ``sys.modules``."""
    import hashlib

    from burn_import.instantiate import execute

    # Other processes use the same number for other models: their pickles must not
    # match.
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
            {key: _in_record_layout(array) for key, array in compiled.weights}
        )
        done = True
    finally:
        if not done:
            del sys.modules[name], linecache.cache[filename]
    return model


def _in_record_layout(array: Array) -> Array:
    """Return ``array`` in a record's layout: C-contiguous and aligned.

    Summation order follows memory order, so a loaded model gives the same bits as a
    written one. Arrays that already have the layout are not copied.
    """
    import numpy as np

    return np.require(array, requirements=["C_CONTIGUOUS", "ALIGNED"])
