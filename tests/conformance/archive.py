"""The cases of the installed onnx in one zip file, which is made when it is missing.

Node cases exist only as the result of running onnx's own generators, which takes a few
seconds; the other kinds are folders in the wheel. All of them are kept in the layout of
those folders (``name/model.onnx``, ``name/test_data_set_0/input_0.pb``), with an index
of what one wants to know of a case without opening it.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import onnx
from onnx import numpy_helper

DATA = Path(onnx.__file__).parent / "backend" / "test" / "data"
CACHE = Path(__file__).parents[2] / ".pytest_cache" / "conformance"
#: To be raised when what the file holds changes, so that an old one is not used.
LAYOUT = 1
INDEX = "index.json"
#: The runner's tolerances where a case has none.
TOLERANCE = (1e-3, 1e-7)
Files = Mapping[str, bytes]


@dataclass(frozen=True)
class Recorded:
    """A case as it is written to the archive."""

    name: str
    kind: str
    model: onnx.ModelProto
    files: Files
    tolerance: tuple[float, float] = TOLERANCE


def archive() -> Path:
    """The path of the archive, made on the first call for an onnx version.

    A process waits for another one that is making it.
    """
    path = CACHE / f"onnx-{onnx.__version__}-{LAYOUT}.zip"
    if path.exists():
        return path
    CACHE.mkdir(parents=True, exist_ok=True)
    with locked(path.with_suffix(".lock")):
        if not path.exists():
            handle, name = tempfile.mkstemp(dir=CACHE, suffix=".part")
            os.close(handle)
            _write(Path(name))
            Path(name).replace(path)  # at once: it is read without the lock
    return path


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file while the block runs, where the system has such locks."""
    with path.open("w") as file:
        if sys.platform != "win32":
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _write(path: Path) -> None:
    index = {}
    with ZipFile(path, "w") as file:
        for case in _recorded():
            assert case.name not in index, case.name
            file.writestr(f"{case.name}/model.onnx", case.model.SerializeToString())
            for name, data in case.files.items():
                file.writestr(f"{case.name}/{name}", data)
            index[case.name] = {
                "kind": case.kind,
                "operators": operators_of(case.model),
                "inputs": [_type_name(value) for value in case.model.graph.input],
                "sets": len({name.partition("/")[0] for name in case.files}),
                "tolerance": case.tolerance,
            }
        file.writestr(INDEX, json.dumps(index))


def _recorded() -> Iterator[Recorded]:
    yield from _node_cases()
    for kind in ("simple", "pytorch-operator", "pytorch-converted"):
        for folder in sorted(path for path in (DATA / kind).iterdir() if path.is_dir()):
            yield _folder_case(kind, folder)
    for path in sorted((DATA / "light").glob("*.onnx")):
        yield _light_case(path)


def _node_cases() -> Iterator[Recorded]:
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        cases = collect_testcases()
    for case in cases:
        assert case.model is not None and case.data_sets is not None
        graph = case.model.graph
        files = {}
        for number, (inputs, outputs) in enumerate(case.data_sets):
            folder = f"test_data_set_{number}"
            for role, values, declared in (
                ("input", inputs, graph.input),
                ("output", outputs, graph.output),
            ):
                for i, (value, info) in enumerate(zip(values, declared, strict=True)):
                    files[f"{folder}/{role}_{i}.pb"] = encoded(value, info)
        yield Recorded(case.name, "node", case.model, files, (case.rtol, case.atol))


def _folder_case(kind: str, folder: Path) -> Recorded:
    tolerance = TOLERANCE
    if (folder / "data.json").exists():
        settings = json.loads((folder / "data.json").read_text("utf-8"))
        tolerance = (settings.get("rtol", 1e-3), settings.get("atol", 1e-7))
    files = {
        f"{path.parent.name}/{path.name}": path.read_bytes()
        for path in sorted(folder.glob("test_data_set_*/*.pb"))
    }
    return Recorded(
        folder.name, kind, onnx.load(folder / "model.onnx"), files, tolerance
    )


def _light_case(path: Path) -> Recorded:
    """The case of a model without input data, with the data that onnx gives it."""
    model = onnx.load(path)
    stored = {tensor.name for tensor in model.graph.initializer}
    (info,) = (value for value in model.graph.input if value.name not in stored)
    shape = [dim.dim_value for dim in info.type.tensor_type.shape.dim]
    size = int(np.prod(shape))
    image = (np.arange(size).reshape(shape) / size).astype(np.float32)
    output = path.with_name(f"{path.stem}_output_0.pb").read_bytes()
    files = {
        "test_data_set_0/input_0.pb": encoded(image, info),
        "test_data_set_0/output_0.pb": output,
    }
    return Recorded(f"test_{path.stem}", "light", model, files)


def encoded(value: Any, info: onnx.ValueInfoProto) -> bytes:
    """A value as the message that its declared type asks for, serialized."""
    kind = info.type.WhichOneof("value")
    if kind == "sequence_type":
        return bytes(numpy_helper.from_list(value).SerializeToString())
    if kind == "optional_type":
        return bytes(numpy_helper.from_optional(value).SerializeToString())
    assert kind == "tensor_type", f"{info.name} is a {kind}"
    if not isinstance(value, onnx.TensorProto):
        array = np.asarray(value)
        if array.dtype.kind in "US":
            array = array.astype(object)
        value = numpy_helper.from_array(array)
    return bytes(value.SerializeToString())


def decoded(data: bytes, info: onnx.ValueInfoProto) -> Any:
    """The array, list or None in a serialized message of a declared type."""
    kind = info.type.WhichOneof("value")
    if kind == "sequence_type":
        return numpy_helper.to_list(onnx.SequenceProto.FromString(data))
    if kind == "optional_type":
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(data))
    assert kind == "tensor_type", f"{info.name} is a {kind}"
    return numpy_helper.to_array(onnx.TensorProto.FromString(data))


def operators_of(model: onnx.ModelProto) -> list[str]:
    """The operators of a model and its bodies, ``domain:name`` outside ONNX's own.

    Calls of the model's own functions count as what these are made of.
    """
    own = {(function.domain, function.name) for function in model.functions}
    results = set()
    for node in _nodes(
        [*model.graph.node, *(n for f in model.functions for n in f.node)]
    ):
        if (node.domain, node.op_type) not in own:
            domain = "" if node.domain == "ai.onnx" else node.domain
            results.add(f"{domain}:{node.op_type}" if domain else node.op_type)
    return sorted(results)


def _nodes(nodes: Sequence[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    for node in nodes:
        yield node
        for attribute in node.attribute:
            for body in (attribute.g, *attribute.graphs):
                yield from _nodes(body.node)


def _type_name(info: onnx.ValueInfoProto) -> str:
    """``float32[2]`` for a tensor of rank 2, else the kind of value."""
    kind = info.type.WhichOneof("value")
    if kind != "tensor_type":
        return str(kind)
    tensor = info.type.tensor_type
    dtype = onnx.TensorProto.DataType.Name(tensor.elem_type).lower()
    return f"{dtype}[{len(tensor.shape.dim) if tensor.HasField('shape') else '?'}]"
