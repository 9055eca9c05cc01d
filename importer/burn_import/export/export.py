"""``export_onnx``: conversion of a module to an ONNX file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper

import burn_import.export.forms  # noqa: F401 registers the forms
from burn.backend.arrays import ArrayBackend
from burn.defaults import default_device
from burn.plan.pytree import is_named, mapped
from burn.tensor import Tensor, innermost, tensor
from burn_import.export.emit import Emitter
from burn_import.export.errors import ExportError
from burn_import.export.example import (
    ExampleRun,
    documented_outputs,
    example_run,
    expected_results,
    leaves,
)
from burn_import.export.extents import Sizes
from burn_import.export.files import Exported, write_onnx
from burn_import.export.program import Program, Recording, align, record
from burn_import.export.recorder import ExportRecorder, boxes_by_name, paths_of
from burn_import.output import OutputRefused
from burn_import.version import VERSION
from burn_ir.dim import counting_unnamed

#: The supported opsets, with the IR version of each.
IR_VERSIONS = {17: 8, 18: 8, 19: 9, 20: 9, 21: 10, 22: 10, 23: 11}
DEFAULT_OPSET = 20
#: Composites that are written as one node, since their parts have no ONNX operators.
WHOLE = frozenset(
    {"affine_grid", "compress", "grid_sample", "hardmax", "instance_norm", "lp_pool"}
    | {"lrn", "one_hot", "roi_align"}
)
Dynamic = Mapping[str, Mapping[int, str]]


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
        program = recorded(run, dynamic or {}, specialize=specialize)
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
    result: Any, given: Sequence[str], model: Any
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
        given = given or (listed if len(listed) == len(outputs) else [])
    if given and len(given) != len(outputs):
        raise OutputRefused(f"expected {len(outputs)} output names, got {list(given)}")
    if given:
        outputs = [(name, leaf) for name, (_, leaf) in zip(given, outputs, strict=True)]
    if len({name for name, _ in outputs}) != len(outputs) or not outputs:
        names = [name for name, _ in outputs]
        raise OutputRefused(f"expected results of distinct names, got {names}")
    return outputs


def recorded(example: ExampleRun, dynamic: Dynamic, *, specialize: bool) -> Program:
    """Return the program of a model from one run, and one more per named dimension.

    Without ``specialize`` it also runs on different data, to detect Python code
    whose computations depend on tensor values.
    """
    model, tensors = example.model, example.tensors
    axes = _named_axes(tensors, example.names, dynamic)
    device = _device(tensors)

    def run(sizes: Sizes, change: Callable[[Tensor], Tensor] = _same) -> Recording:
        recorder = ExportRecorder(
            *(device, paths_of(model), WHOLE),
            symbolic=bool(axes),
            specialize=specialize,
        )
        order = iter(range(len(tensors)))

        def resized(leaf: Any) -> Any:
            if type(leaf) is not Tensor:
                return leaf
            return change(_resize(leaf, next(order), axes, sizes))

        given, by_name = mapped(resized, (list(example.args), dict(example.named)))
        return record(model, tuple(given), by_name, recorder, sizes)

    base = {name: tensors[t].shape[a] for (t, a), name in axes.items()}
    recordings = [run(base)]
    for name in base:
        recordings.append(_run_with_other_sizes(run, base, [name]))
    if base:
        recordings += [_run_with_other_sizes(run, base, list(base), skip=1)]
    if not specialize:
        with suppress(ValueError, TypeError, IndexError):  # the values do not affect it
            recordings.append(run(base, _filled_like))
    return align(recordings)


def _same(leaf: Tensor) -> Tensor:
    return leaf


def _filled_like(leaf: Tensor) -> Tensor:
    """Return a tensor of the same type, filled with the first element of ``leaf``."""
    array = innermost(leaf).numpy()
    return tensor(np.full_like(array, array.flat[0])) if array.size else leaf


def _named_axes(
    tensors: Sequence[Tensor], names: Sequence[str], dynamic: Dynamic
) -> dict[tuple[int, int], str]:
    """Return the named dimensions by (input, axis).

    Raises:
        ValueError: an input or axis does not exist, or a dimension has two sizes.
    """
    axes: dict[tuple[int, int], str] = {}
    sizes: dict[str, int] = {}
    for name, extents in dynamic.items():
        if name not in names:
            raise ValueError(f"expected an input among {list(names)}, got {name!r}")
        number = list(names).index(name)
        for axis, extent in extents.items():
            shape = tensors[number].shape
            if not -len(shape) <= axis < len(shape) or not extent.isidentifier():
                raise ValueError(
                    f"{name}: expected an axis and a name, got {axis}: {extent!r}"
                )
            size = shape[axis]
            if sizes.setdefault(extent, size) != size:
                raise ValueError(
                    f"{extent} is {sizes[extent]} and {size} in the example"
                )
            axes[number, axis % len(shape)] = extent
    return axes


def _resize(leaf: Tensor, number: int, axes: Mapping[Any, str], sizes: Sizes) -> Tensor:
    """Return ``leaf`` repeated or cut along its named axes."""
    array = innermost(leaf).numpy()
    for (position, axis), name in axes.items():
        if position == number and array.shape[axis] != sizes[name]:
            index = np.arange(sizes[name]) % max(array.shape[axis], 1)
            array = np.take(array, index, axis)
    return leaf if array.shape == leaf.shape else tensor(array)


def _run_with_other_sizes(
    run: Callable[[Sizes], Recording], base: Sizes, names: list[str], skip: int = 0
) -> Recording:
    """Return a run with other sizes of ``names``, the first that succeeds."""
    problems = []
    for times, more in ((2, 0), (3, 0), (1, 1), (1, 2), (0.5, 0)):
        if skip:
            skip -= 1
            continue
        changed = {
            name: max(int(size * times) + more * (1 + i), 1)
            for i, (name, size) in enumerate(base.items())
        }
        sizes = {**base, **{name: changed[name] for name in names}}
        if any(sizes[name] == base[name] for name in names):
            continue
        try:
            return run(sizes)
        except (ValueError, TypeError, IndexError) as error:
            if isinstance(error, ExportError):
                raise
            problems.append(f"{sizes}: {error}")
    raise ExportError(f"the model runs with no other size of {names}: {problems[0]}")


def _device(tensors: Sequence[Tensor]) -> ArrayBackend:
    for item in tensors:
        backend = innermost(item).backend
        if isinstance(backend, ArrayBackend) and backend.level > 0:
            return backend
    device: ArrayBackend = default_device()
    return device
