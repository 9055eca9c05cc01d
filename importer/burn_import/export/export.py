"""``export_onnx``: conversion of a module to an ONNX file."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper

import burn_import.export.forms  # noqa: F401 registers the forms
from burn.plan.pytree import is_named
from burn_import.export.emit import Emitter
from burn_import.export.example import (
    ExampleRun,
    documented_outputs,
    example_run,
    expected_results,
    leaves,
)
from burn_import.export.files import Exported, write_onnx
from burn_import.export.program import Program, align
from burn_import.export.recorder import boxes_by_name
from burn_import.export.runs import Dynamic, Runs, filled_like
from burn_import.output import OutputRefused
from burn_import.tracing.identifiers import strip_reserved_suffix
from burn_import.verification.inputs import declared_types, random_inputs, stored_inputs
from burn_import.version import VERSION
from burn_ir.dim import counting_unnamed


def export_declared(
    model: Any,
    output: str | Path,
    *,
    inputs: Path | Mapping[str, Any] | None = None,
    fixed: bool = False,
    **options: Any,
) -> Exported:
    """Write a module as an ONNX file, with the extents it declares as dynamic ones.

    ``inputs`` are example arrays by name or a ``.npz`` file, else random ones of the
    declared types. The file calls the input ``input_`` of a module ``input``, as the
    original does. ``fixed`` fixes all extents to those of the example. ``options`` are
    further ones of ``export_onnx``.

    Raises:
        InputsError: the module declares no inputs, or the example lacks one.
        ExportError, OutputRefused: as ``export_onnx`` does.
    """
    types = declared_types(model)
    if isinstance(inputs, Path):
        example = stored_inputs(inputs, list(types))
    else:
        example = random_inputs(types) if inputs is None else dict(inputs)
    names = {
        strip_reserved_suffix(name): {
            a: str(n) for a, n in enumerate(shape) if str(n).isidentifier()
        }
        for name, (_, shape) in types.items()
    }
    options["dynamic"] = {} if fixed else names
    options["input_names"] = [strip_reserved_suffix(name) for name in example]
    return export_onnx(model, example, output, **options)


#: The supported opsets, with the IR version of each.
IR_VERSIONS = {17: 8, 18: 8, 19: 9, 20: 9, 21: 10, 22: 10, 23: 11}
DEFAULT_OPSET = 20


def export_onnx(
    model: Any,
    example: Any,
    path: str | Path,
    *,
    dynamic: Dynamic | None = None,
    opset: int = DEFAULT_OPSET,
    input_names: Sequence[str] = (),
    output_names: Sequence[str] = (),
    external_data: bool = False,
    specialize: bool = False,
    verify: bool = True,
    force: bool = False,
) -> Exported:
    """Write ``model`` as an ONNX file, and return a report of the written files.

    The model runs once on ``example``, and its primitives are recorded: each
    becomes ONNX nodes, parameters become initializers named by their keys.
    ``model`` is a module in evaluation mode, or a function. ``example`` is a tensor
    or an array, a tuple of positional arguments, or a dict of arguments by name.

    ``dynamic`` names dimensions that vary: ``{"images": {0: "batch"}}``. Input
    names default to those of the parameters, output names to keys and fields, to the
    outputs that the docstring of a generated module lists, or to ``output`` and
    ``output_0``. With ``specialize`` Python code may read tensor values,
    which are then fixed to those of the example. ``verify`` compares the file's
    results with the module's, using onnxruntime or else ONNX's reference
    implementation.

    Raises:
        ExportError: a primitive has no ONNX form; names the primitive and the line.
        VerificationError: the file gives other results; nothing is written.
        OutputRefused: the file exists, and ``force`` is not set; or ``output_names``
            are not distinct, or not as many as the results.
        ValueError: an opset, an input or an axis does not exist.
    """
    run = example_run(model, example, input_names)
    with counting_unnamed():
        program = record_runs(run, dynamic or {}, specialize=specialize)
        proto, arrays = _model(program, run, output_names, opset)
    expected = expected_results(run) if verify else None
    options: Any = {"external_data": external_data, "force": force}
    rest: Any = {"expected": expected, "notes": program.notes}
    return write_onnx(proto, arrays, Path(path), **options, **rest)


def _model(
    program: Program, run: ExampleRun, output_names: Sequence[str], opset: int
) -> tuple[onnx.ModelProto, dict[str, np.ndarray[Any, Any]]]:
    """Return the model without initializers, and the initializers.

    Raises:
        ValueError: the opset cannot be written.
    """
    if opset not in IR_VERSIONS:
        raise ValueError(f"expected an opset from 17 to 23, got {opset}")
    outputs = _named_outputs(program.result, output_names, run.model)
    emitter = Emitter(program, boxes_by_name(run.model), opset)
    graph, arrays = emitter.graph(run.names, outputs, type(run.model).__name__)
    proto = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", opset)],
        producer_name="burn-import",
        producer_version=VERSION,
        ir_version=IR_VERSIONS[opset],
    )
    return proto, arrays


def _named_outputs(
    result: Any, output_names: Sequence[str], model: Any
) -> list[tuple[str, Any]]:
    """Return the results with names: custom names, keys, documented names, or numbers.

    Raises:
        OutputRefused: there are more or fewer names than results, or two are equal.
    """
    if isinstance(result, dict) or is_named(type(result)):
        pairs = (
            result.items()
            if isinstance(result, dict)
            else zip(result._fields, result, strict=True)
        )
        outputs = [leaf for key, value in pairs for leaf in leaves(value, str(key))]
    else:
        outputs = list(leaves(result, "output"))
        listed = documented_outputs(model)
        output_names = output_names or (listed if len(listed) == len(outputs) else [])
    if output_names and len(output_names) != len(outputs):
        raise OutputRefused(
            f"expected {len(outputs)} output names, got {list(output_names)}"
        )
    if output_names:
        outputs = [
            (name, leaf) for name, (_, leaf) in zip(output_names, outputs, strict=True)
        ]
    if len({name for name, _ in outputs}) != len(outputs) or not outputs:
        names = [name for name, _ in outputs]
        raise OutputRefused(f"expected results of distinct names, got {names}")
    return outputs


def record_runs(example: ExampleRun, dynamic: Dynamic, *, specialize: bool) -> Program:
    """Return the program of a model from one run, and one more per named dimension.

    Without ``specialize`` it also runs on different data, to detect Python code
    whose computations depend on tensor values.
    """
    runs = Runs(example, dynamic, specialize=specialize)
    recordings = runs.with_all_sizes()
    if not specialize:
        with suppress(ValueError, TypeError, IndexError):  # the values do not affect it
            recordings.append(runs.run(runs.base, filled_like))
    program = align(recordings)
    program.notes += runs.notes
    return program
