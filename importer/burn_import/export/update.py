"""Replacement of weights in the ONNX file that a module was imported from.

A key of the module is matched to the tensor of the file with its contents: equal,
transposed, or in another shape. Tensors with equal contents are distinguished by a
second import of the file, with a slightly different value in each of them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from burn_import.export.errors import ExportError
from burn_import.export.files import check_new, data_path, write_proto
from burn_import.frontends.onnx.walk import graphs_of

Array = np.ndarray[Any, Any]


@dataclass
class Updated:
    """The written file, and the status of each key.

    ``replaced`` are the keys whose tensors changed, ``unchanged`` those with equal
    values. ``without`` are trained keys without a counterpart in the file,
    ``unknown`` names in the weights that are no keys of the module, ``missing``
    keys that the weights lack.
    """

    path: Path
    replaced: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    without: dict[str, str] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class TensorLocation:
    """The tensor of the file that a key is stored in, by index, and its layout."""

    number: int
    transposed: bool = False

    def contents(self, array: Array, like: Array) -> Array:
        """Return a key's array in the layout of the file's tensor."""
        oriented = array.T if self.transposed else array
        return oriented.reshape(like.shape).astype(like.dtype)


def update_onnx(
    original: str | Path,
    weights: Mapping[str, Any],
    output: str | Path,
    *,
    partial: bool = False,
    force: bool = False,
) -> Updated:
    """Write ``original`` with its weights replaced by ``weights``.

    ``weights`` are arrays by key of the imported module, as ``save_weights`` writes
    them. The changed model is imported again before it is written, and must give
    these weights. With ``partial``, weights without a counterpart are skipped.

    Raises:
        ExportError: trained weights have no counterpart, and ``partial`` is not set; a
            weight has another shape than the module's; all are listed. Or the changed
            model, imported again, has other weights.
        OutputRefused: the output exists, and ``force`` is not set.
        UnreadableFile, UnsupportedModel, InvalidModel: of the original.
    """
    original, output = Path(original), Path(output)
    keys = dict(_imported(original))  # raises an error for a damaged file
    model = onnx.load(str(original))
    arrays = {name: _as_array(value) for name, value in weights.items()}
    report = Updated(output)
    report.unknown = sorted(arrays.keys() - keys.keys())
    report.missing = sorted(keys.keys() - arrays.keys())
    _check_shapes(keys, arrays)
    tensors = list(_tensors(model))
    matches = _matches(
        original, model, keys, [numpy_helper.to_array(t) for t in tensors]
    )
    _replace(tensors, keys, arrays, matches, report)
    if not partial:
        _check_complete(report)
    external = _is_external(original)
    check_new(output, *([data_path(output)] if external else []), force=force)
    _check_replaced(_imported_copy(model, original), arrays, report.replaced)
    write_proto(model, output, external=external)
    return report


def _imported(path: Path) -> list[tuple[str, Array]]:
    from burn_import.pipeline import import_model

    return [(key, np.asarray(array)) for key, array in import_model(path).weights]


def _as_array(value: Any) -> Array:
    return np.asarray(value.numpy() if hasattr(value, "numpy") else value)


def _check_shapes(keys: Mapping[str, Array], arrays: Mapping[str, Array]) -> None:
    wrong = [
        f"{name}: expected {list(keys[name].shape)}, got {list(array.shape)}"
        for name, array in arrays.items()
        if name in keys and array.shape != keys[name].shape
    ]
    if wrong:
        raise ExportError(
            f"weights of other shapes: {'; '.join(wrong)}. The program of the file is "
            "for its own shapes; write a model with other layers by export_onnx"
        )


def _tensors(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """Yield every tensor of the model: initializers and constants, with subgraphs."""
    nodes = [node for function in model.functions for node in function.node]
    for graph in graphs_of(model):
        yield from graph.initializer
        nodes += graph.node
    for node in nodes:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t


def _matches(
    path: Path, model: onnx.ModelProto, keys: Mapping[str, Array], stored: list[Array]
) -> dict[str, list[TensorLocation]]:
    """Return the counterparts of each key."""
    table = _index(stored)
    matches = {key: _counterparts(array, table) for key, array in keys.items()}
    if any(len(each) > 1 for each in matches.values()):
        changed, copy = _with_distinct_tensors(model, stored)
        other = _index(changed)
        for key, array in _imported_copy(copy, path):
            if len(matches.get(key, ())) > 1:
                exact = _counterparts(array, other)
                matches[key] = [m for m in exact if m in matches[key]] or matches[key]
    return matches


Index = dict[tuple[str, bytes], list[int]]


def _index(stored: list[Array]) -> Index:
    table: Index = {}
    for number, array in enumerate(stored):
        if array.dtype != object:
            table.setdefault((str(array.dtype), _contents(array)), []).append(number)
    return table


def _contents(array: Array) -> bytes:
    import hashlib

    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).digest()


def _counterparts(array: Array, table: Index) -> list[TensorLocation]:
    kind = str(array.dtype)
    same = [TensorLocation(n) for n in table.get((kind, _contents(array)), ())]
    if same or array.ndim != 2:
        return same
    return [TensorLocation(n, True) for n in table.get((kind, _contents(array.T)), ())]


def _with_distinct_tensors(
    model: onnx.ModelProto, stored: list[Array]
) -> tuple[list[Array], onnx.ModelProto]:
    """Return a copy in which float tensors of equal contents differ slightly."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    random, changed = np.random.default_rng(0), list(stored)
    for number, tensor in enumerate(_tensors(copy)):
        array = stored[number]
        if array.dtype.kind != "f" or array.ndim == 0:
            continue
        noise = random.uniform(0.5e-3, 1e-3, array.shape)
        changed[number] = (array + noise).astype(array.dtype)
        name = tensor.name
        tensor.CopyFrom(numpy_helper.from_array(changed[number], name))
    return changed, copy


def _imported_copy(copy: onnx.ModelProto, path: Path) -> list[tuple[str, Array]]:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        changed = Path(folder) / path.name
        write_proto(copy, changed, external=copy.ByteSize() > 2**31 - 2**24)
        return [(key, np.array(array)) for key, array in _imported(changed)]


def _replace(
    tensors: list[onnx.TensorProto],
    keys: Mapping[str, Array],
    arrays: Mapping[str, Array],
    matches: Mapping[str, list[TensorLocation]],
    report: Updated,
) -> None:
    """Set the tensors of the trained keys; add each key to the report."""
    contents: dict[int, bytes] = {}
    for key, array in arrays.items():
        if key not in keys:
            continue
        counterparts = matches.get(key, [])
        if np.array_equal(
            array.astype(keys[key].dtype), keys[key], equal_nan=_nan(array)
        ):
            report.unchanged.append(key)
            for match in counterparts:
                contents.setdefault(match.number, _contents(array))
        elif len(counterparts) != 1:
            report.without[key] = (
                "computed from several tensors of the file"
                if not counterparts
                else f"{len(counterparts)} tensors have its contents"
            )
        else:
            _set(tensors, key, array, counterparts[0], contents, report)


def _check_complete(report: Updated) -> None:
    """Raise ``ExportError`` if a weight has no counterpart in the file."""
    lost = [*report.without, *report.unknown]
    if lost:
        raise ExportError(
            "weights without a counterpart in the file: "
            + "; ".join(f"{key} ({report.without.get(key, 'no key')})" for key in lost)
            + "; pass partial=True (--partial) to write the others"
        )


def _check_replaced(
    imported: list[tuple[str, Array]], arrays: Mapping[str, Array], replaced: list[str]
) -> None:
    """Raise ``ExportError`` if a replaced key differs in the new model."""
    weights = dict(imported)
    wrong = [
        key
        for key in replaced
        if key not in weights
        or not np.array_equal(
            arrays[key].astype(weights[key].dtype),
            weights[key],
            equal_nan=_nan(arrays[key]),
        )
    ]
    if wrong:
        raise ExportError(f"weights that the importer reads otherwise: {wrong}")


def _nan(array: Array) -> bool:
    return array.dtype.kind in "fc"


def _set(
    tensors: list[onnx.TensorProto],
    key: str,
    array: Array,
    match: TensorLocation,
    contents: dict[int, bytes],
    report: Updated,
) -> None:
    tensor = tensors[match.number]
    new = match.contents(array, numpy_helper.to_array(tensor))
    if contents.setdefault(match.number, _contents(new)) != _contents(new):
        report.without[key] = "another key of the same tensor has other values"
        return
    tensor.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(new), tensor.name))
    report.replaced.append(key)


def _is_external(path: Path) -> bool:
    model = onnx.load(str(path), load_external_data=False)
    return any(
        t.data_location == onnx.TensorProto.EXTERNAL for t in model.graph.initializer
    )
