"""``quantize``: a model file in int8 or bfloat16, and the accuracy that it costs."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx

from burn import dtypes
from burn.plan.calibration import Accuracy, ErrorSums
from burn.record import atomic_write
from burn_import.codegen.module.module import wrap_sentences
from burn_import.export.export import export_declared
from burn_import.export.files import check, check_new
from burn_import.loading import load
from burn_import.model_files import source_sha256
from burn_import.options import Options
from burn_import.output import check_module_path, check_ours
from burn_import.pipeline import Compiled, import_model, write_model
from burn_import.quantization.qdq import (
    LAYERS,
    Quantizer,
    calibrate,
    check_float_model,
    prepare,
)
from burn_import.quantization.samples import Sample, check_samples
from burn_import.status import QUANTIZED_TO
from burn_import.verification.errors import InputsError
from burn_import.verification.session import run_model, session_runner
from burn_import.verification.verify import results_of

#: The opset in which all layers are defined for bfloat16.
_BFLOAT16_OPSET = 22
Run = Callable[[Mapping[str, Any]], list[Any]]


@dataclass(frozen=True)
class OutputAccuracy:
    """The accuracy of one output; ``is_classification`` if it is rows of scores."""

    name: str
    accuracy: Accuracy
    is_classification: bool


@dataclass(frozen=True)
class LayerSensitivity:
    """The accuracy of the worst output where one layer alone is quantized."""

    name: str
    operator: str
    accuracy: Accuracy


@dataclass(frozen=True)
class Quantized:
    """The written model, the accuracy by output, and by layer, the worst first.

    ``nodes`` are the nodes that were quantized to int8.
    """

    paths: tuple[Path, ...]
    outputs: tuple[OutputAccuracy, ...]
    layers: tuple[LayerSensitivity, ...] = ()
    nodes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reference:
    """Samples with the results of the float model, and the names of its outputs."""

    samples: Sequence[Sample]
    names: Sequence[str]
    results: Sequence[list[Any]]

    def accuracy(self, run: Run) -> tuple[OutputAccuracy, ...]:
        """Return the accuracy of each output of floats that ``run`` returns."""
        sums = [ErrorSums() for _ in self.names]
        for sample, expected in zip(self.samples, self.results, strict=True):
            pairs = zip(run(sample), expected, strict=True)
            for at, (actual, reference) in enumerate(pairs):
                if _is_float(reference):
                    sums[at] = sums[at].with_arrays(np.asarray(actual), reference)
        return tuple(
            OutputAccuracy(name, each.accuracy(), _has_scores(first))
            for name, each, first in zip(self.names, sums, self.results[0], strict=True)
            if each.elements
        )


def _is_float(array: Any) -> bool:
    return isinstance(array, np.ndarray) and dtypes.is_float(array.dtype)


def _has_scores(array: Any) -> bool:
    """Return whether an output is rows of scores, of which the largest is the class."""
    return bool(array.ndim == 2 and array.shape[1] > 1)


def reference_results(
    model: onnx.ModelProto, samples: Sequence[Sample], path: Path
) -> Reference:
    """Return the results of a float model, the file at ``path``, for samples.

    Raises:
        InputsError: no engine accepts the samples.
        UnsupportedModel, InvalidModel: because of the file, says the importer.
    """
    try:
        results = [run_model(model, sample)[0] for sample in samples]
    except InputsError:
        import_model(path)
        raise
    return Reference(samples, [output.name for output in model.graph.output], results)


def check_output(output: Path, *, force: bool) -> None:
    """Check that ``output`` may be written: a module or an ONNX file.

    Raises:
        OutputRefused: it may not, or is of neither kind.
    """
    if output.suffix == ".onnx":
        check_new(output, force=force)
        return
    check_module_path(output)
    if not force:
        check_ours(output)


def quantize_int8(
    path: Path,
    output: Path,
    samples: Sequence[Sample],
    evaluation: Sequence[Sample],
    *,
    per_channel: bool = True,
    exclude: Sequence[str] = (),
    has_sensitivities: bool = True,
    force: bool = False,
    origin: Path | None = None,
) -> Quantized:
    """Write an ONNX model with layers of 8-bit integers, as ONNX or as a module.

    ``samples`` give the ranges of values, ``evaluation`` the accuracy. Nodes whose name
    or operator matches a pattern of ``exclude`` stay as they are. The header of a
    module names ``origin``, by default ``path``.

    Raises:
        InputsError: the samples or patterns do not fit, or onnxruntime is missing.
        UnsupportedModel: the model is quantized already, or has nothing to quantize.
        OutputRefused: the output is there, and ``force`` is not given.
    """
    check_output(output, force=force)
    check_samples(samples)
    model = check_float_model(path)
    reference = reference_results(model, evaluation, path)
    with TemporaryDirectory() as name:
        folder = Path(name)
        prepared, notes = prepare(model, folder)
        ranges = calibrate(prepared, samples, folder)
        quantizer = Quantizer(prepared, ranges, per_channel=per_channel)
        nodes = quantizer.chosen(exclude)
        quantized = quantizer.quantize(nodes)
        check(quantized)
        layers = (
            _sensitivities(quantizer, nodes, reference) if has_sensitivities else ()
        )
        temporary = folder / f"{output.stem}.onnx"
        onnx.save(quantized, temporary)
        flags = _flags(per_channel=per_channel, exclude=exclude)
        about = (origin or path, "int8", flags)
        paths, run = _written(temporary, quantized, output, about, force=force)
    outputs = reference.accuracy(run)
    return Quantized(paths, outputs, layers, tuple(nodes), tuple(notes))


def _flags(*, per_channel: bool, exclude: Sequence[str]) -> str:
    """Return the options of the command that are not the defaults."""
    excluded = [f"--exclude {shlex.quote(pattern)}" for pattern in exclude]
    return " ".join(["--per-tensor"] * (not per_channel) + excluded)


def _written(
    source: Path,
    model: onnx.ModelProto,
    output: Path,
    about: tuple[Path, str, str],
    *,
    force: bool,
) -> tuple[tuple[Path, ...], Run]:
    """Write a quantized model; return the files, and the program that runs them.

    ``about`` is as for ``_with_origin``.
    """
    if output.suffix == ".onnx":
        atomic_write(output, model.SerializeToString(deterministic=True))
        return (output,), session_runner(model)
    compiled = _with_origin(import_model(source, Options(stem=output.stem)), *about)
    return _write_module(compiled, output, force=force), _runner(load(source))


def _with_origin(compiled: Compiled, origin: Path, kind: str, flags: str) -> Compiled:
    """Return a module that names the model it was quantized from, and how."""
    command = f"burn-import quantize {origin.name} --to {kind} {flags}".rstrip()
    note = f"Quantized by `{command}`, with samples that this file does not name."
    head, line, rest = compiled.text.partition("\nWeights (")
    lines = "\n".join(wrap_sentences([note]))
    _, _, details = compiled.origin.partition(" (")
    return replace(
        compiled,
        text=f"{head}\n{lines}\n{line}{rest}",
        origin=f"{origin.name} ({QUANTIZED_TO}{kind}, {details}",
        source_sha256=source_sha256(origin),
    )


def _write_module(compiled: Compiled, output: Path, *, force: bool) -> tuple[Path, ...]:
    return write_model(compiled, output, force=force).files


def _sensitivities(
    quantizer: Quantizer, names: Sequence[str], reference: Reference
) -> tuple[LayerSensitivity, ...]:
    """Return the accuracy with each layer alone quantized, the worst first."""
    few = replace(
        reference, samples=reference.samples[:1], results=reference.results[:1]
    )
    layers = []
    for name in names:
        if quantizer.nodes[name] not in LAYERS:
            continue
        with quantizer.quantized([name]) as model:
            outputs = few.accuracy(session_runner(model))
        if outputs:
            worst = min(outputs, key=lambda row: row.accuracy.decibels)
            row = LayerSensitivity(name, quantizer.nodes[name], worst.accuracy)
            layers.append(row)
    return tuple(sorted(layers, key=lambda layer: layer.accuracy.decibels))


def _runner(model: Any) -> Run:
    return lambda sample: results_of(model, list(sample.values()))


def quantize_bfloat16(
    path: Path,
    output: Path,
    model: onnx.ModelProto,
    evaluation: Sequence[Sample],
    *,
    force: bool = False,
    origin: Path | None = None,
) -> Quantized:
    """Write an ONNX model that computes in bfloat16, as ONNX or as a module.

    Its inputs, weights and outputs are bfloat16 too. The header of a module names
    ``origin``, by default ``path``.

    Raises:
        UnsupportedModel: it has no floats.
        OutputRefused: the output is there, and ``force`` is not given.
    """
    check_output(output, force=force)
    check_samples(evaluation)
    reference = reference_results(model, evaluation, path)
    options = Options(dtype="bfloat16", stem=output.stem)
    module = load(path, options)
    narrow = [{k: _rounded(a) for k, a in sample.items()} for sample in evaluation]
    if output.suffix == ".py":
        compiled = import_model(path, options)
        if origin not in (None, path):
            compiled = _with_origin(compiled, origin, "bf16", "")
        paths = _write_module(compiled, output, force=force)
    else:
        done = export_declared(
            *(module, output),
            inputs=narrow[0],
            output_names=reference.names,
            opset=_BFLOAT16_OPSET,
            verify=False,
            force=force,
        )
        paths = (done.path,)
    outputs = replace(reference, samples=narrow).accuracy(_runner(module))
    return Quantized(paths, outputs)


def _rounded(array: Any) -> Any:
    is_wide = dtypes.is_float(array.dtype)
    return array.astype(dtypes.bfloat16) if is_wide else array
