"""The contents of every value of a graph, as onnxruntime computes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import onnx
from onnx import numpy_helper

from tests.fuzz.generator import FuzzCase
from tests.fuzz.generator.trial import Rejected, as_arrays
from tests.fuzz.reference.session import REFUSALS, session_of

#: Types of values that NumPy cannot hold as they are, by onnxruntime's names.
UNSHOWN = (
    "optional",
    "map",
    *("float8", "float4", "bfloat16"),
    *("int4", "uint4", "int2", "uint2"),
)


def _is_shown(kind: str) -> bool:
    """Return whether onnxruntime returns values of a type unchanged."""
    inner = kind.removeprefix("seq(").removeprefix("tensor(")
    return not inner.startswith(UNSHOWN)


@dataclass
class Contents:
    """The contents of every value of a graph, for each of its inputs.

    Optional values and those of types that NumPy lacks are left out.
    """

    model: onnx.ModelProto
    runs: list[dict[str, Any]]

    @classmethod
    def of(cls, case: FuzzCase, feeds: Sequence[Mapping[str, Any]]) -> Contents | None:
        """The contents of every value; None if onnxruntime cannot show them."""
        graph = case.model.graph
        names = [n for node in graph.node for n in node.output if n]
        stored = {i.name: numpy_helper.to_array(i) for i in graph.initializer}
        shown = onnx.ModelProto()
        shown.CopyFrom(case.model)
        del shown.graph.output[:]
        shown.graph.output.extend(onnx.ValueInfoProto(name=n) for n in names)
        runs = []
        try:
            for given in feeds:
                # A run may write over stored numbers, as in :class:`Oracle`.
                session = session_of(shown)
                names = [o.name for o in session.get_outputs() if _is_shown(o.type)]
                values = [
                    as_arrays(y) for y in session.run(names, deepcopy(dict(given)))
                ]
                results = dict(zip(names, values, strict=True))
                runs.append({**stored, **given, **results})
        except (*REFUSALS, Rejected):
            return None
        return cls(case.model, runs)
