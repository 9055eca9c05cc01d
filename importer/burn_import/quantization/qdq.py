"""ONNX files with QuantizeLinear and DequantizeLinear, made by onnxruntime.

Its quantizer knows which operands its kernels, and those of other engines, take as
integers. Ranges that ``burn.compile`` observes belong to operands of plans, which have
no names of an ONNX file.
"""

from __future__ import annotations

import copy
import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import onnx

from burn_import.frontends.onnx.walk import all_nodes
from burn_import.quantization.samples import Sample
from burn_import.verification.errors import InputsError
from burn_import.verification.session import read_proto, refused_by_onnxruntime
from burn_ir import UnsupportedModel

#: Operators of models that have been quantized.
QUANTIZED = frozenset(
    ("QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "ConvInteger")
    + ("MatMulInteger", "QLinearConv", "QLinearMatMul", "QLinearAdd", "QLinearMul")
    + ("QGemm", "MatMulNBits")
)
#: Operators that compute most of a model, whose sensitivities are reported.
LAYERS = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})
#: The first opset that quantizes by axis, and the one that older files are turned into.
_FIRST_OPSET, _NEW_OPSET = 13, 17
#: Protobuf's limit; models of more are not one message.
_LARGEST = 2**31 - 2**24
_ONNX = ("", "ai.onnx")
#: Layers that onnxruntime folds batch norms into, and its names of the results.
_FOLDED = frozenset({"Conv", "Gemm"})
_FOLDED_WEIGHT, _FOLDED_BIAS = "ConvBnFusion_W_", "ConvBnFusion_BN_B_"

#: Levels of onnxruntime's log; it begins with the second.
_FATAL, _WARNING = 4, 2
#: The exceptions of onnxruntime's quantizer for models that it does not support.
_FAULTS = (
    *(ArithmeticError, AttributeError, LookupError),
    *(RuntimeError, TypeError, ValueError),
)


class Quantizer:
    """A float model with the ranges of its values, which quantizes chosen nodes."""

    def __init__(
        self, model: onnx.ModelProto, ranges: Any, *, per_channel: bool
    ) -> None:
        self._model = model
        self._ranges = ranges
        self._per_channel = per_channel
        self.nodes = {
            node.name: node.op_type
            for node in model.graph.node
            if node.op_type in quantizable_operators()
        }

    def chosen(self, excluded: Sequence[str]) -> list[str]:
        """Return the names of nodes that no pattern matches by name or operator.

        Raises:
            InputsError: a pattern matches no node, or nothing is left.
        """
        pairs = self.nodes.items()
        for pattern in excluded:
            if not any(_matches(pattern, name, kind) for name, kind in pairs):
                shown = ", ".join(name for name, kind in pairs if kind in LAYERS)
                raise InputsError(
                    f"--exclude {pattern!r} matches no node", f"There are {shown}."
                )
        names = [
            name
            for name, kind in pairs
            if not any(_matches(pattern, name, kind) for pattern in excluded)
        ]
        if not any(self.nodes[name] in LAYERS for name in names):
            raise InputsError("--exclude leaves no layer to quantize")
        return names

    def quantize(self, names: Sequence[str]) -> onnx.ModelProto:
        """Return a copy of the model with the nodes of these names quantized.

        Raises:
            UnsupportedModel: onnxruntime's quantizer fails.
        """
        return self._quantize(copy.deepcopy(self._model), names)

    @contextmanager
    def quantized(self, names: Sequence[str]) -> Iterator[onnx.ModelProto]:
        """Context in which the model itself has these nodes quantized, without a copy.

        Raises:
            UnsupportedModel: onnxruntime's quantizer fails.
        """
        state = _State.of(self._model, names)
        try:
            yield self._quantize(self._model, names)
        finally:
            state.restore(self._model)

    def _quantize(
        self, model: onnx.ModelProto, names: Sequence[str]
    ) -> onnx.ModelProto:
        from onnxruntime.quantization import QuantType
        from onnxruntime.quantization.qdq_quantizer import QDQQuantizer

        with _quiet():
            quantizer = QDQQuantizer(
                model,
                per_channel=self._per_channel,
                reduce_range=False,
                weight_qType=QuantType.QInt8,
                activation_qType=QuantType.QUInt8,
                tensors_range=self._ranges,
                nodes_to_quantize=list(names),
                nodes_to_exclude=[],
                op_types_to_quantize=sorted(quantizable_operators()),
                extra_options={},
            )
            try:
                quantizer.quantize_model()
            except _FAULTS as error:
                raise UnsupportedModel(
                    f"onnxruntime's quantizer fails: {type(error).__name__}: {error}",
                    "Try --per-tensor, or --exclude for parts of the model.",
                ) from error
            quantizer.model.topological_sort()
        result: onnx.ModelProto = quantizer.model.model
        _drop_unused_domains(result)
        return result


@dataclass(frozen=True)
class _State:
    """The parts of a model that the quantizer changes: not the other nodes' weights."""

    rest: onnx.ModelProto
    names: frozenset[str]
    weights: tuple[onnx.TensorProto, ...]

    @classmethod
    def of(cls, model: onnx.ModelProto, names: Sequence[str]) -> _State:
        """Return the state of ``model`` before these nodes are quantized."""
        rest = onnx.ModelProto(
            ir_version=model.ir_version,
            producer_name=model.producer_name,
            producer_version=model.producer_version,
            opset_import=model.opset_import,
            graph=onnx.GraphProto(
                node=model.graph.node, value_info=model.graph.value_info
            ),
        )
        operands = {
            name
            for node in model.graph.node
            if node.name in names
            for name in node.input
        }
        stored = model.graph.initializer
        touched = [copy.deepcopy(t) for t in stored if t.name in operands]
        return cls(rest, frozenset(t.name for t in stored), tuple(touched))

    def restore(self, model: onnx.ModelProto) -> None:
        """Undo the changes of the quantizer; weights may be in another order."""
        stored = model.graph.initializer
        for number in reversed(range(len(stored))):
            if stored[number].name not in self.names:
                del stored[number]
        names = {tensor.name for tensor in stored}
        stored.extend(t for t in self.weights if t.name not in names)
        del model.graph.node[:], model.graph.value_info[:], model.opset_import[:]
        model.MergeFrom(self.rest)


def quantizable_operators() -> frozenset[str]:
    """Return the operators that onnxruntime quantizes."""
    from onnxruntime.quantization.registry import QDQRegistry

    return frozenset(QDQRegistry)


def _matches(pattern: str, name: str, operator: str) -> bool:
    return fnmatchcase(name, pattern) or fnmatchcase(operator, pattern)


def check_float_model(path: Path) -> onnx.ModelProto:
    """Return the ONNX model in a file, which is to be quantized.

    Raises:
        InputsError: onnxruntime is not installed.
        UnsupportedModel: it is quantized already, has no layer, or is too large.
    """
    try:
        import onnxruntime  # noqa: F401
    except ImportError:
        hint = "Install it: pip install onnxruntime."
        raise InputsError("onnxruntime is not installed", hint) from None
    model = read_proto(path)
    for node in model.graph.node:
        if node.op_type in QUANTIZED:
            raise UnsupportedModel(
                f"the model is quantized already: node {node.name!r} is a "
                f"{node.op_type}",
                "Quantize the float model that it was made of.",
            )
    if not any(node.op_type in LAYERS for node in model.graph.node):
        raise UnsupportedModel(
            f"expected a layer to quantize ({', '.join(sorted(LAYERS))}), got none"
        )
    if model.ByteSize() > _LARGEST:
        raise UnsupportedModel("models of more than 2 GB are not quantized to int8")
    return model


def prepare(model: onnx.ModelProto, folder: Path) -> tuple[onnx.ModelProto, list[str]]:
    """Return the model with batch norms folded and nodes named, and notes.

    Raises:
        InputsError: onnxruntime does not run the model.
        UnsupportedModel: it cannot be turned into an opset that quantizes.
    """
    from onnxruntime.quantization.quant_utils import load_model_with_shape_infer
    from onnxruntime.quantization.shape_inference import quant_pre_process

    model, notes = _in_new_opset(model)
    _name_nodes(model)
    source, target = folder / "named.onnx", folder / "prepared.onnx"
    onnx.save(model, source)
    with _quiet(), refused_by_onnxruntime():
        quant_pre_process(str(source), str(target), skip_symbolic_shape=True)
    # Without inferred shapes the quantizer would make a copy of each model it is given.
    prepared = load_model_with_shape_infer(target)
    _name_nodes(prepared)
    _restore_names(prepared)
    _flatten_biases(prepared)
    return prepared, notes


def calibrate(model: onnx.ModelProto, samples: Sequence[Sample], folder: Path) -> Any:
    """Return the ranges of a prepared model's values over all samples.

    Raises:
        InputsError: onnxruntime does not run the model on a sample.
    """
    from onnxruntime.quantization import CalibrationDataReader, create_calibrator

    class Reader(CalibrationDataReader):  # type: ignore[misc]  # untyped
        def __init__(self) -> None:
            self._samples: Iterator[Sample] = iter(samples)

        def get_next(self) -> Any:
            return next(self._samples, None)

    source = folder / "calibrated.onnx"
    onnx.save(model, source)
    with _quiet(), refused_by_onnxruntime():
        calibrator = create_calibrator(
            str(source),
            sorted(quantizable_operators()),
            augmented_model_path=str(folder / "augmented.onnx"),
        )
        calibrator.collect_data(Reader())
        return calibrator.compute_data()


def _in_new_opset(model: onnx.ModelProto) -> tuple[onnx.ModelProto, list[str]]:
    """Return the model in an opset with quantization by axis, and a note of that."""
    version = next((o.version for o in model.opset_import if o.domain in _ONNX), 1)
    if version >= _FIRST_OPSET:
        return model, []
    try:
        converted = onnx.version_converter.convert_version(model, _NEW_OPSET)
    except (RuntimeError, onnx.version_converter.ConvertError) as error:
        raise UnsupportedModel(
            f"opset {version} cannot be turned into {_NEW_OPSET}: {error}",
            f"Export the model again with opset {_NEW_OPSET}.",
        ) from error
    return converted, [f"turned from opset {version} into {_NEW_OPSET}"]


def _name_nodes(model: onnx.ModelProto) -> None:
    """Give nodes without a name of their own one: the operator and a number."""
    counts = Counter(node.name for node in model.graph.node)
    numbers: Counter[str] = Counter()
    for node in model.graph.node:
        if node.name and counts[node.name] == 1:
            continue
        name = node.name
        while not name or counts[name]:
            name = f"{node.op_type}_{numbers[node.op_type]}"
            numbers[node.op_type] += 1
        counts[node.name] -= 1
        node.name = name
        counts[name] += 1


def _restore_names(model: onnx.ModelProto) -> None:
    """Name weights with a folded batch norm as before, and biases after the weights."""
    used = {tensor.name for tensor in model.graph.initializer}
    names: dict[str, str] = {}
    for node in model.graph.node:
        if node.op_type not in _FOLDED:
            continue
        weight = node.input[1].removeprefix(_FOLDED_WEIGHT)
        pairs = {node.input[1]: weight} if weight != node.input[1] else {}
        if len(node.input) > 2 and node.input[2].startswith(_FOLDED_BIAS):
            stem = weight.removesuffix("weight") if weight.endswith("weight") else ""
            name = f"{stem}bias" if stem else node.input[2].removeprefix(_FOLDED_BIAS)
            pairs[node.input[2]] = name
        names |= {old: new for old, new in pairs.items() if new not in used}
        used.update(names.values())
    for tensor in model.graph.initializer:
        tensor.name = names.get(tensor.name, tensor.name)
    for inner in all_nodes(model.graph):
        inner.input[:] = [names.get(name, name) for name in inner.input]


def _flatten_biases(model: onnx.ModelProto) -> None:
    """Turn biases of ``Gemm`` of one row into vectors, which the quantizer expects."""
    readers = Counter(name for node in all_nodes(model.graph) for name in node.input)
    stored = {tensor.name: tensor for tensor in model.graph.initializer}
    for node in model.graph.node:
        name = node.input[2] if len(node.input) > 2 else ""
        if node.op_type != "Gemm" or name not in stored or readers[name] != 1:
            continue
        extents = list(stored[name].dims)
        if len(extents) == 2 and extents[0] == 1:
            stored[name].dims[:] = extents[1:]


def _drop_unused_domains(model: onnx.ModelProto) -> None:
    """Remove the opsets of domains that no node is of; onnxruntime adds all it has."""
    used = {"", *(node.domain for node in all_nodes(model.graph))}
    used |= {node.domain for function in model.functions for node in function.node}
    imports = [entry for entry in model.opset_import if entry.domain in used]
    del model.opset_import[:]
    model.opset_import.extend(imports)


@contextmanager
def _quiet() -> Iterator[None]:
    """Context in which onnxruntime logs nothing; it raises its errors as well."""
    import onnxruntime

    previous = logging.root.manager.disable
    logging.disable(logging.WARNING)
    onnxruntime.set_default_logger_severity(_FATAL)
    try:
        yield
    finally:
        logging.disable(previous)
        onnxruntime.set_default_logger_severity(_WARNING)
