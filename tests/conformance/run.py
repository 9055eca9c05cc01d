"""From a model to the results of the module that is generated for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx

from burn import tensor
from burn_import.codegen.gate.gate import check_body
from burn_import.compiler import Source
from burn_import.frontends.onnx import read
from burn_ir import Graph, build


@dataclass(frozen=True)
class Generated:
    """The model of a generated module, which takes and returns NumPy's arrays."""

    model: Any

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        """Results for ``inputs``; both are arrays, lists of arrays, or None."""
        result = self.model(*map(given, inputs))
        return [
            to_arrays(x) for x in (result if isinstance(result, tuple) else (result,))
        ]


def built(proto: onnx.ModelProto, folder: Path) -> Graph:
    """The graph of a model, which is written to ``folder`` so that it can be read."""
    path = folder / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    return build(read(path))


def executed(text: str, source: Source, folder: Path) -> Generated:
    """The module with the text, which is that of the source or laid out anew."""
    check_body(text.encode())
    module = ModuleType("generated")
    module.__file__ = str(folder / "model.py")
    exec(compile(text, module.__file__, "exec"), module.__dict__)
    model = getattr(module, source.class_name)()
    model.load_state_dict(dict(source.weights))
    return Generated(model)


def given(value: Any) -> Any:
    """A value of a data set as a generated module takes it."""
    if value is None:
        return None
    if isinstance(value, list):
        return [given(item) for item in value]
    if isinstance(value, dict):
        return {key: given(item) for key, item in value.items()}
    return tensor(np.asarray(value))


def to_arrays(value: Any) -> Any:
    """Return a result of a generated module as a data set has it."""
    if isinstance(value, list):
        return [to_arrays(item) for item in value]
    if isinstance(value, dict):
        return {key: to_arrays(item) for key, item in value.items()}
    return value.numpy() if hasattr(value, "numpy") else value
