"""Archives as ``torch.export.save`` writes them, made by hand."""

import io
import json
import zipfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from burn_import.frontends.torch_export.schema import SCALARS
from burn_ir.types import Array

CODES = {name: code for code, name in SCALARS.items()}


#: Where an author wrote the call: a private path, which no output may contain.
TRACE = 'File "/made/up/secret.py", line 12, in forward\n    return secret(x)'


def symbol(name: str) -> dict[str, Any]:
    """Return an extent that is a symbol."""
    text = f"Symbol('{name}', positive=True, integer=True)"
    return {"as_expr": {"expr_str": text, "hint": {"as_int": 2}}}


def expression(text: str) -> dict[str, Any]:
    """Return an extent, or a number that is computed, that is an expression."""
    return {"as_expr": {"expr_str": text, "hint": {"as_int": 6}}}


def meta(dtype: str, sizes: Sequence[Any]) -> dict[str, Any]:
    """Return the type of a tensor; sizes are numbers, or symbols by name."""
    extents = [symbol(s) if isinstance(s, str) else {"as_int": s} for s in sizes]
    strides = np.cumprod([1, *(s if isinstance(s, int) else 2 for s in sizes[:0:-1])])
    return {
        "dtype": CODES[dtype],
        "sizes": extents,
        "strides": (
            [{"as_int": int(s)} for s in strides[::-1][-len(sizes) or 1 :]]
            if sizes
            else []
        ),
        "storage_offset": {"as_int": 0},
        "requires_grad": False,
        "device": {"type": "cpu", "index": None},
        "layout": 7,
    }


def ref(name: str) -> dict[str, Any]:
    """Return an argument that is a tensor."""
    return {"as_tensor": {"name": name}}


def call(
    target: str, result: str, modules: str = "L__self__,,Net", **args: Any
) -> dict[str, Any]:
    """Return a call of an operator with one result."""
    return {
        "target": f"torch.ops.{target}",
        "inputs": [{"name": k, "arg": v, "kind": 1} for k, v in args.items()],
        "outputs": [ref(result)],
        "metadata": {"nn_module_stack": modules, "stack_trace": TRACE},
        "name": result,
    }


def program(
    inputs: Mapping[str, Any],
    weights: Mapping[str, Array],
    nodes: Sequence[Any],
    values: Mapping[str, Any],
    outputs: Sequence[str],
    buffers: Collection[str] = (),
) -> dict[str, Any]:
    """Return the JSON of a program; weights are called ``p_`` and their path.

    Those in ``buffers`` are called ``b_`` and their path.
    """
    stored = {stored_name(path, path in buffers): path for path in weights}
    types = {
        name: meta(str(weights[p].dtype), weights[p].shape)
        for name, p in stored.items()
    }
    given = [{"user_input": {"arg": ref(name)}} for name in inputs]
    specs = [
        (
            {"buffer": {"arg": {"name": name}, "buffer_name": path, "persistent": True}}
            if path in buffers
            else {"parameter": {"arg": {"name": name}, "parameter_name": path}}
        )
        for name, path in stored.items()
    ]
    graph = {
        "inputs": [ref(name) for name in (*stored, *inputs)],
        "outputs": [ref(name) for name in outputs],
        "nodes": list(nodes),
        "tensor_values": {**types, **inputs, **values},
        "sym_int_values": {},
        "sym_float_values": {},
        "sym_bool_values": {},
    }
    results = [{"user_output": {"arg": ref(name)}} for name in outputs]
    signature = {"input_specs": specs + given, "output_specs": results}
    return {
        "graph_module": {"graph": graph, "signature": signature},
        "schema_version": {"major": 8, "minor": 20},
        "torch_version": "2.13.0",
    }


LEAF: dict[str, Any] = {"type": None, "context": None, "children_spec": []}


def tree(kind: str, context: Any, *children: Any) -> dict[str, Any]:
    """Return a container of a tree; its context as JSON unless it is a text."""
    text = context if isinstance(context, str) else json.dumps(context)
    return {"type": kind, "context": text, "children_spec": list(children)}


def with_trees(content: dict[str, Any], **trees: Any) -> dict[str, Any]:
    """Return a program with ``in_spec`` and ``out_spec``."""
    texts = {name: json.dumps([1, of]) for name, of in trees.items()}
    calls = [{"fqn": "", "signature": {"inputs": [], "outputs": [], **texts}}]
    content["graph_module"]["module_call_graph"] = calls
    return content


def stored_name(path: str, is_buffer: bool = False) -> str:
    """Return what a program calls the tensor at ``path``."""
    return f"{'b' if is_buffer else 'p'}_{path.replace('.', '_')}"


def linear_program() -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the program of a linear layer and a ReLU, and its weights."""
    rng = np.random.default_rng(0)
    weights = {
        "head.weight": rng.normal(size=(3, 5)).astype(np.float32),
        "head.bias": rng.normal(size=3).astype(np.float32),
    }
    sizes = ["s7", 4, 3]
    nodes = [
        call(
            "aten.linear.default",
            "linear",
            "L__self__,,Net;L__self__head,head,torch.nn.modules.linear.Linear",
            input=ref("x"),
            weight=ref("p_head_weight"),
            bias=ref("p_head_bias"),
        ),
        call("aten.relu.default", "relu", self=ref("linear")),
    ]
    values = {name: meta("float32", sizes) for name in ("linear", "relu")}
    inputs = {"x": meta("float32", ["s7", 4, 5])}
    return program(inputs, weights, nodes, values, ["relu"]), weights


#: Where an archive says what its weights are.
TABLE = "data/weights/model_weights_config.json"


def table(weights: Mapping[str, Array]) -> dict[str, Any]:
    """Return what an archive says of its weights; equal objects are tied."""
    numbers = {id(array): number for number, array in enumerate(weights.values())}
    return {
        "config": {
            path: {
                "path_name": f"weight_{numbers[id(array)]}",
                "is_param": True,
                "use_pickle": False,
                "tensor_meta": meta(str(array.dtype), array.shape),
            }
            for path, array in weights.items()
        }
    }


def archive(content: Any, weights: Mapping[str, Array], **extra: bytes) -> bytes:
    """Return an archive of a program and its weights."""
    entries: dict[str, bytes] = {"archive_format": b"pt2", "byteorder": b"little"}
    entries["models/model.json"] = json.dumps(content).encode()
    for number, array in enumerate(weights.values()):
        entries[f"data/weights/weight_{number}"] = array.tobytes()
    entries[TABLE] = json.dumps(table(weights)).encode()
    entries.update(extra)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as zipped:
        for key, value in entries.items():
            zipped.writestr(f"net/{key}", value)
    return file.getvalue()


def saved(folder: Path, content: Any, weights: Mapping[str, Array]) -> Path:
    """Return the file that an archive was written to."""
    path = folder / "net.pt2"
    path.write_bytes(archive(content, weights))
    return path
