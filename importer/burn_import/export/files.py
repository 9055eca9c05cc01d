"""Exported models as files: initializers, external data, checks, verification."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper

from burn.record import atomic_write
from burn.record.atomic import atomic_file
from burn_import.export.errors import ExportError, VerificationError
from burn_import.output import OutputRefused
from burn_import.verification.session import difference, run_model

#: Protobuf's limit is 2 GiB for the whole file.
_LARGEST = 2**31 - 2**24
#: Initializers of fewer bytes stay in the file.
_INLINE = 1024
_ALIGNMENT = 4096
#: How far results may be from the model's, relative to the largest of them.
TOLERANCE = 1e-4


@dataclass(frozen=True)
class Exported:
    """What was written: the file, that of its external data, and notes.

    ``difference`` is the largest one from the model's results on the example, relative
    to the largest number; None if nothing was compared.
    """

    path: Path
    data: Path | None = None
    difference: float | None = None
    engine: str = ""
    notes: Sequence[str] = field(default_factory=list)


def write_onnx(
    proto: onnx.ModelProto,
    arrays: Mapping[str, np.ndarray[Any, Any]],
    path: Path,
    *,
    external_data: bool = False,
    force: bool = False,
    expected: tuple[dict[str, Any], list[Any]] | None = None,
    notes: Sequence[str] = (),
) -> Exported:
    """Check, verify and write a model with its initializers; see ``export_onnx``.

    Raises:
        OutputRefused: a file is there, and ``force`` is not given.
        ExportError: the model does not pass ONNX's checker.
        VerificationError: its results differ from ``expected``.
    """
    proto.graph.initializer.extend(_tensor(k, v) for k, v in arrays.items())
    is_large = proto.ByteSize() > _LARGEST
    external = external_data or is_large
    check_new(path, *([data_path(path)] if external else []), force=force)
    worst, engine = None, ""
    if is_large:
        notes = [*notes, "larger than 2 GB: neither checked nor compared"]
    else:
        check(proto)
        worst, engine = _verified(proto, expected)
    data = write_proto(proto, path, external=external)
    return Exported(path, data, worst, engine, list(notes))


def data_path(path: Path) -> Path:
    """Return the file of external data of the model at ``path``."""
    return path.with_name(path.name + ".data")


def write_proto(proto: onnx.ModelProto, path: Path, *, external: bool) -> Path | None:
    """Write a model, ``external`` with a file for its large initializers.

    Each file is replaced in one step, the data first. The path of the data is returned.
    """
    data = data_path(path) if external else None
    if data is not None:
        with atomic_file(data) as file:
            offset = 0
            for stored in proto.graph.initializer:
                if len(stored.raw_data) < _INLINE:
                    continue
                gap = -offset % _ALIGNMENT
                file.write(b"\0" * gap + stored.raw_data)
                _refer(stored, data.name, offset + gap)
                offset += gap + int(stored.external_data[2].value)
    atomic_write(path, proto.SerializeToString(deterministic=True))
    return data


def _refer(stored: onnx.TensorProto, location: str, offset: int) -> None:
    """Replace the contents of ``stored`` by their position in a file."""
    entries = {"location": location, "offset": offset, "length": len(stored.raw_data)}
    stored.ClearField("raw_data")
    stored.ClearField("external_data")
    stored.data_location = onnx.TensorProto.EXTERNAL
    for key, value in entries.items():
        stored.external_data.add(key=key, value=str(value))


def check_new(*paths: Path, force: bool) -> None:
    """Return if files may be written.

    Raises:
        OutputRefused: one is there, and ``force`` is not given.
    """
    for path in paths:
        if path.exists() and not force:
            raise OutputRefused(
                f"{path} is there; pass force=True (--force) to replace"
            )


def check(model: onnx.ModelProto) -> None:
    """Return if ONNX's checker and its shape inference accept ``model``.

    Raises:
        ExportError: they do not.
    """
    try:
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise ExportError(
            f"ONNX's checker refuses the exported model: {error}"
        ) from error


def _verified(
    model: onnx.ModelProto, expected: tuple[dict[str, Any], list[Any]] | None
) -> tuple[float | None, str]:
    """The largest difference from what is expected, and what computed."""
    if expected is None:
        return None, ""
    inputs, results = expected
    names = [output.name for output in model.graph.output]
    given = {i.name: inputs[i.name] for i in model.graph.input}
    outputs, engine = run_model(model, given)
    worst = 0.0
    for name, actual, wanted in zip(names, outputs, results, strict=True):
        error = difference(np.asarray(actual), wanted)
        if not error <= TOLERANCE:
            raise VerificationError(
                f"output {name!r}: {engine} differs from the module by {error:.2g}"
            )
        worst = max(worst, error)
    return worst, engine


def _tensor(name: str, array: np.ndarray[Any, Any]) -> onnx.TensorProto:
    if array.dtype == object:
        texts = [str(text).encode() for text in array.ravel()]
        kind: Any = texts
        return helper.make_tensor(name, onnx.TensorProto.STRING, array.shape, kind)
    return onnx.numpy_helper.from_array(
        np.ascontiguousarray(array).reshape(array.shape), name
    )
