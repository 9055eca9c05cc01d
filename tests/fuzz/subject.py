"""Running a graph by the project: imported, compiled, in lower precision."""

import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import burn
from burn_import import load
from burn_import.options import Options
from tests.conformance.run import given, to_arrays

#: Ways to import a graph, all of which have to give the same values.
IMPORTS = {
    "default": Options(class_name="Net"),
    "no passes": Options(class_name="Net", passes=()),
    "flat": Options(class_name="Net", flat=True),
}


@contextmanager
def imported(model: onnx.ModelProto, options: Options) -> Iterator[Any]:
    """The generated module of ``model``, loaded, while the context lasts."""
    before = set(sys.modules)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.onnx"
        path.write_bytes(model.SerializeToString())
        try:
            yield load(path, options)
        finally:
            for name in set(sys.modules) - before:
                if name.startswith("burn_import.loaded_"):
                    del sys.modules[name]


def called(function: Any, feeds: Mapping[str, Any]) -> list[Any]:
    """The results of ``function`` on inputs in the order of ``feeds``, as arrays."""
    with np.errstate(all="ignore"):
        result = function(*map(given, feeds.values()))
        values = result if isinstance(result, tuple) else (result,)
        return [to_arrays(value) for value in values]


def compiled_calls(
    module: Any, feeds: Sequence[Mapping[str, Any]], **options: Any
) -> Iterator[list[Any]]:
    """The results of a compiled module on each of ``feeds``, called one by one."""
    plan = burn.compile(module, **options)
    for one in feeds:
        yield called(plan, one)
