"""Files of exported models: initializers, external data, checks, verification."""

import math
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

#: Protobuf's limit of 2 GiB for a whole file, with a margin.
_LARGEST = 2**31 - 2**24
#: Minimum bytes of an initializer in the external data file.
_INLINE = 1024
_ALIGNMENT = 4096
#: Tolerated deviation from the model's results, relative to the largest magnitude.
TOLERANCE = 1e-4
#: The same for models that quantize, of the norm of all deviations: a value between two
#: integers is rounded to either, since engines sum in another order.
QUANTIZED_TOLERANCE = 1e-2


@dataclass(frozen=True)
class Exported:
    """The written file, its external data file, and notes.

    ``difference`` is the largest deviation from the model's results on the example,
    relative to the largest magnitude; None without verification.
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
        OutputRefused: a file exists, and ``force`` is not set.
        ExportError: ONNX's checker rejects the model.
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
        worst, engine = _verify(proto, expected)
    data = write_proto(proto, path, external=external)
    return Exported(path, data, worst, engine, list(notes))


def data_path(path: Path) -> Path:
    """Return the external data file of the model at ``path``."""
    return path.with_name(path.name + ".data")


def write_proto(proto: onnx.ModelProto, path: Path, *, external: bool) -> Path | None:
    """Write a model, with large initializers in a data file if ``external``.

    Each file is replaced atomically, the data first. Returns the path of the data
    file.
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
                _refer_to_data(stored, data.name, offset + gap)
                offset += gap + int(stored.external_data[2].value)
    atomic_write(path, proto.SerializeToString(deterministic=True))
    return data


def _refer_to_data(stored: onnx.TensorProto, location: str, offset: int) -> None:
    """Replace the contents of ``stored`` by a reference into the data file."""
    entries = {"location": location, "offset": offset, "length": len(stored.raw_data)}
    stored.ClearField("raw_data")
    stored.ClearField("external_data")
    stored.data_location = onnx.TensorProto.EXTERNAL
    for key, value in entries.items():
        stored.external_data.add(key=key, value=str(value))


def check_new(*paths: Path, force: bool) -> None:
    """Check that the files may be written.

    Raises:
        OutputRefused: one exists, and ``force`` is not set.
    """
    for path in paths:
        if path.exists() and not force:
            raise OutputRefused(f"{path} already exists; force=True replaces it")


def check(model: onnx.ModelProto) -> None:
    """Check the model with ONNX's checker and its shape inference.

    Raises:
        ExportError: they reject it.
    """
    try:
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise ExportError(
            f"ONNX's checker refuses the exported model: {error}"
        ) from error


def _verify(
    model: onnx.ModelProto, expected: tuple[dict[str, Any], list[Any]] | None
) -> tuple[float | None, str]:
    """Return the largest deviation from the expected results, and the engine."""
    if expected is None:
        return None, ""
    inputs, results = expected
    names = [output.name for output in model.graph.output]
    arrays = {i.name: inputs[i.name] for i in model.graph.input}
    is_quantized = any(n.op_type == "QuantizeLinear" for n in model.graph.node)
    outputs, engine = run_model(model, arrays, is_optimized=not is_quantized)
    worst = 0.0
    for name, actual, reference in zip(names, outputs, results, strict=True):
        error = difference(np.asarray(actual), reference)
        is_equal = error <= TOLERANCE
        if is_quantized and not is_equal:
            is_equal = _norm_error(np.asarray(actual), reference) <= QUANTIZED_TOLERANCE
        if not is_equal:
            raise VerificationError(
                f"output {name!r}: {engine} differs from the module by {error:.2g}"
            )
        worst = max(worst, error)
    return worst, engine


def _norm_error(actual: np.ndarray[Any, Any], reference: Any) -> float:
    """Return the norm of the deviations, relative to that of the results."""
    reference = np.asarray(reference).astype(np.float64)
    if actual.shape != reference.shape or actual.dtype == object:
        return math.inf
    error = np.linalg.norm(actual.astype(np.float64) - reference)
    return float(error / max(np.linalg.norm(reference), np.finfo(np.float64).tiny))


def _tensor(name: str, array: np.ndarray[Any, Any]) -> onnx.TensorProto:
    if array.dtype == object:
        texts = [str(text).encode() for text in array.ravel()]
        kind: Any = texts
        return helper.make_tensor(name, onnx.TensorProto.STRING, array.shape, kind)
    return onnx.numpy_helper.from_array(
        np.ascontiguousarray(array).reshape(array.shape), name
    )
