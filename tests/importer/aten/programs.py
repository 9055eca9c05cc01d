"""Programs of one call, written from a case as an archive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from burn_ir.types import Array
from tests.importer.aten.case import SIZES, Case, Extent, InputSpec
from tests.importer.exported_files import CODES, meta, program, ref


def argument(value: Any, name: str) -> dict[str, Any]:
    """Return the schema's union for an argument."""
    if isinstance(value, InputSpec):
        return ref(name)
    if isinstance(value, list | tuple):
        return listed(list(value), name)
    if isinstance(value, np.dtype):
        return {"as_scalar_type": CODES[value.name]}
    if isinstance(value, Extent):
        return {"as_sym_int": {"as_name": size_name(value)}}
    if value is None:
        return {"as_none": True}
    if isinstance(value, complex):
        return {"as_complex": {"real": value.real, "imag": value.imag}}
    kinds = {bool: "as_bool", int: "as_int", float: "as_float", str: "as_string"}
    return {kinds[type(value)]: value}


def listed(values: Sequence[Any], name: str) -> dict[str, Any]:
    """Return the schema's union for a list."""
    names = [f"{name}_{index}" for index in range(len(values))]
    if any(isinstance(value, InputSpec) for value in values):
        items = [argument(v, n) for v, n in zip(values, names, strict=True)]
        if all(isinstance(value, InputSpec) for value in values):
            return {"as_tensors": [item["as_tensor"] for item in items]}
        return {"as_optional_tensors": items}
    if any(isinstance(value, Extent) for value in values):
        return {"as_sym_ints": [extent(value) for value in values]}
    kinds = {bool: "as_bools", int: "as_ints", float: "as_floats", str: "as_strings"}
    return {kinds[type(values[0])] if values else "as_ints": values}


def extent(value: int | Extent) -> dict[str, Any]:
    """Return a number among sizes."""
    return (
        {"as_int": value} if isinstance(value, int) else {"as_name": size_name(value)}
    )


def size_name(value: Extent) -> str:
    return f"sym_size_int_{value.axis}"


def written(case: Case) -> dict[str, Any]:
    """Return the JSON of the program that calls the operator of a case."""
    inputs = {name: meta(x.dtype, x.dims) for name, x in case.inputs.items()}
    results = [case.results(case.arrays(size)) for size in SIZES]
    names = [f"result_{i}" for i in range(len(results[0]) - len(case.changed))]
    values = {
        name: meta(small.dtype.name, extents(name, small, large))
        for name, small, large in zip(names, *results, strict=False)
    }
    listed = isinstance(case.expected(*case.arrays(SIZES[0])), list)
    refs = [ref(name) for name in names]
    outputs = [{"as_tensors": [r["as_tensor"] for r in refs]}] if listed else refs
    sizes = sizes_of(case)
    node = {
        "target": called(case.target),
        "inputs": [
            {"name": key, "arg": argument(value, key), "kind": 1}
            for key, value in case.args.items()
        ],
        "outputs": outputs,
        "metadata": {"nn_module_stack": "L__self__,,Net"},
        "name": "result_0",
    }
    nodes = [*sizes.values(), node]
    content = program(inputs, {}, nodes, values, [*names, *case.changed])
    graph = content["graph_module"]["graph"]
    graph["sym_int_values"] = {name: {"as_expr": {"expr_str": "n"}} for name in sizes}
    return content


def called(target: str) -> str:
    """Return the spelling of a target in programs."""
    return f"torch.ops.{target}" if target.startswith("aten.") else target


def extents(name: str, small: Array, large: Array) -> list[int | str]:
    """Return the extents of a result: a symbol where they vary."""
    pairs = zip(small.shape, large.shape, strict=True)
    return [
        a if a == b else ("n" if (a, b) == SIZES else f"{name}_{axis}")
        for axis, (a, b) in enumerate(pairs)
    ]


def sizes_of(case: Case) -> Mapping[str, Any]:
    """Return the calls that compute the extents that a case uses, by their names."""
    first = next(iter(case.inputs), "")
    flat = [
        item
        for value in case.args.values()
        for item in (value if isinstance(value, list | tuple) else [value])
    ]
    results = {}
    for item in flat:
        if isinstance(item, Extent):
            name = size_name(item)
            results[name] = {
                "target": "torch.ops.aten.sym_size.int",
                "inputs": [
                    {"name": "self", "arg": ref(first), "kind": 1},
                    {"name": "dim", "arg": {"as_int": item.axis}, "kind": 1},
                ],
                "outputs": [{"as_sym_int": {"as_name": name}}],
                "metadata": {},
                "name": name,
            }
    return results
