"""Calls of every operator that has a rule, as the code of an archive writes them.

Their values are checked with the rules. These tests check that calls without overload
name, with positional arguments, find their rule, and the results' types.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from burn_import.frontends.torch_export.complex_as_real import stored_array
from burn_import.frontends.torchscript import read
from burn_import.frontends.torchscript.operators.dtypes import scalar_number
from burn_import.frontends.torchscript.operators.signatures import parameter_names
from burn_ir import build
from tests.importer.aten import families
from tests.importer.aten.case import SIZES, Case, Extent, InputSpec
from tests.importer.pytorch_files import KINDS
from tests.importer.script_files import example, net

#: Operators that never occur in the code, with the reason.
UNWRITTEN = {
    "aten.float_power.Scalar": "the code has torch.pow of a float64 tensor",
    **dict.fromkeys(
        (f"aten.as_strided{name}.default" for name in ("", "_copy", "_scatter")),
        "the code does not say how a tensor lies in memory",
    ),
    "aten.vander.default": "NumPy gives float64 for float32, PyTorch float32",
}


def text(value: Any, name: str, first: str) -> str:
    """Return an argument in the syntax of the code."""
    if isinstance(value, InputSpec):
        return f"in_{name}"
    if isinstance(value, Extent):
        return f"torch.size(in_{first}, {value.axis})"
    if isinstance(value, list | tuple):
        items = (text(x, f"{name}_{n}", first) for n, x in enumerate(value))
        return f"[{', '.join(items)}]"
    if isinstance(value, np.dtype):
        return str(scalar_number(value))
    return f'"{value}"' if isinstance(value, str) else repr(value)


def call(case: Case) -> str:
    """Return the call, with positional arguments as far as they follow the schema."""
    family, name, _ = case.target.split(".")
    first = next(iter(case.inputs), "")
    left = dict(case.args)
    results = []
    for key in parameter_names(case.target.removeprefix(f"{family}.")):
        if key not in left or key == "dtype":
            break
        results.append(text(left.pop(key), key, first))
    results += [f"{key}={text(value, key, first)}" for key, value in left.items()]
    return f"torch.{name}({', '.join(results)})"


def examples(given: Mapping[str, InputSpec]) -> list[Any]:
    """Return the example inputs of a trace."""
    size = SIZES[-1]
    return [
        example(KINDS[x.dtype], *(size if isinstance(d, str) else d for d in x.dims))
        for x in given.values()
    ]


CASES = [
    case
    for case in families.CASES
    if case.target.startswith("aten.") and case.target not in UNWRITTEN
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.sampled(4)
def test_a_call_finds_its_rule(case: Case, tmp_path: Path) -> None:
    parameters = ",\n    ".join(f"in_{name}: Tensor" for name in case.inputs)
    result = f"({call(case)})[0]" if case.is_first_only else call(case)
    script = net(f"return {result}", *examples(case.inputs), parameters=parameters)
    graph = build(read(script.saved(tmp_path)))
    expected = case.results(case.arrays(SIZES[-1]))
    expected = expected[: len(expected) - len(case.changed)]
    actual = [graph.type(name) for name in graph.outputs]
    assert [x and (x.dtype, len(x.dims)) for x in actual] == [
        (x.dtype, x.ndim) for x in map(stored_array, expected)
    ]
