"""``export_onnx``: a module as an ONNX file."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import helper

import burn_import.export.forms  # noqa: F401  fills the table
from burn.backend.arrays import ArrayBackend, default_device
from burn.nn import Module
from burn.plan.pytree import is_named, mapped
from burn.plan.recorder import innermost
from burn.tensor import Tensor, tensor
from burn_import.export.emit import Emitter
from burn_import.export.errors import ExportError
from burn_import.export.extents import Sizes
from burn_import.export.files import Exported, write_onnx
from burn_import.export.program import Program, Recording, align, record
from burn_import.export.recorder import ExportRecorder, boxes_by_name, paths_of
from burn_import.version import VERSION

#: The opsets that can be written, and the IR version that came with each.
IR_VERSIONS = {17: 8, 18: 8, 19: 9, 20: 9, 21: 10, 22: 10, 23: 11}
DEFAULT_OPSET = 20
#: Composites that are written as one node: their parts have no operators.
WHOLE = frozenset(
    [
        "affine_grid",
        "compress",
        "grid_sample",
        "hardmax",
        "instance_norm",
        "lp_pool",
        "lrn",
        "one_hot",
    ]
) | {"roi_align"}
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
    """Write ``model`` as an ONNX file, and return what was written.

    The model is run on ``example`` and its primitives are recorded; each becomes ONNX
    nodes, parameters become initializers under their keys. ``model`` is a module, as it
    is outside of training, or a function. ``example`` is a tensor or an array, a tuple
    of positional arguments, or a dict of arguments by name.

    ``dynamic`` names extents that vary: ``{"images": {0: "batch"}}``. Names of inputs
    are by default those of the parameters, of outputs ``output``, ``output_0`` or keys.
    With ``specialize`` Python may read values, which then are those of the example.
    ``verify`` compares with onnxruntime, else with ONNX's reference.

    Raises:
        ExportError: there is no form in ONNX; names the primitive and the line.
        VerificationError: the file gives other results; nothing is written.
        OutputRefused: the file is there, and ``force`` is not given.
        ValueError: an opset, a name or an axis that does not exist.
    """
    run = example_run(model, example, input_names)
    program = recorded(run, dynamic or {}, specialize=specialize)
    proto, arrays = _model(program, run, output_names, opset)
    expected = _expected(run) if verify else None
    options: Any = {"external_data": external_data, "force": force}
    rest: Any = {"expected": expected, "notes": program.notes}
    return write_onnx(proto, arrays, Path(path), **options, **rest)


class ExampleRun(NamedTuple):
    """A model with the arguments of an example, and a name for each tensor of them."""

    model: Any
    args: tuple[Any, ...]
    named: dict[str, Any]
    names: list[str]

    @property
    def tensors(self) -> list[Tensor]:
        """The tensors among the arguments, in order."""
        given = (*self.args, *self.named.values())
        every = [leaf for value in given for _, leaf in leaves(value, "")]
        return [leaf for leaf in every if type(leaf) is Tensor]


def example_run(model: Any, example: Any, names: Sequence[str] = ()) -> ExampleRun:
    """Return the run of a model, as it is outside of training, on an example.

    Raises:
        ValueError: there are more or fewer names than tensors.
    """
    if isinstance(model, Module):
        model = model.valid()
    args, named = arguments(example)
    given = list(names) or input_names_of(model, args, named)
    run = ExampleRun(model, args, named, given)
    if len(run.names) != len(run.tensors):
        raise ValueError(f"expected {len(run.tensors)} input names, got {run.names}")
    return run


def _model(
    program: Program, run: ExampleRun, output_names: Sequence[str], opset: int
) -> tuple[onnx.ModelProto, dict[str, np.ndarray[Any, Any]]]:
    """The model without initializers, and these.

    Raises:
        ValueError: the opset cannot be written.
    """
    if opset not in IR_VERSIONS:
        raise ValueError(f"expected an opset from 17 to 23, got {opset}")
    outputs = _outputs(program.result, output_names)
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


def arguments(example: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the positional and named arguments of an example, as tensors."""

    def as_tensor(leaf: Any) -> Any:
        if type(leaf) is Tensor:
            return innermost(leaf)
        return tensor(leaf) if isinstance(leaf, np.ndarray | np.generic) else leaf

    given = mapped(as_tensor, example)
    if isinstance(given, dict):
        return (), given
    return (given if type(given) is tuple else (given,)), {}


def input_names_of(
    model: Any, args: tuple[Any, ...], named: Mapping[str, Any]
) -> list[str]:
    """Return a name for each tensor among the arguments."""
    try:
        call = model.__call__ if hasattr(model, "boxes") else model
        signature = inspect.signature(inspect.unwrap(call))
    except (TypeError, ValueError):
        signature = None
    parameters = list(signature.parameters) if signature is not None else []
    if parameters and parameters[0] == "self" and hasattr(model, "boxes"):
        parameters = parameters[1:]
    parameters += [f"input_{i}" for i in range(len(parameters), len(args))]
    pairs = [*zip(parameters, args, strict=False), *named.items()]
    return [name for prefix, value in pairs for name, _ in leaves(value, prefix)]


def leaves(value: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    """Yield (name, leaf) for each tensor or number in nested values."""
    if isinstance(value, dict):
        items: Any = [(str(key), item) for key, item in value.items()]
    elif is_named(type(value)):
        items = list(zip(value._fields, value, strict=True))
    elif isinstance(value, list | tuple):
        items = [(str(i), item) for i, item in enumerate(value)]
    elif value is None or isinstance(value, str):
        return
    else:
        yield prefix, value
        return
    for key, item in items:
        yield from leaves(item, f"{prefix}_{key}")


def _outputs(result: Any, given: Sequence[str]) -> list[tuple[str, Any]]:
    """The results with names: given ones, keys, or numbers.

    Raises:
        ValueError: there are more or fewer names than results.
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
    if given and len(given) != len(outputs):
        raise ValueError(f"expected {len(outputs)} output names, got {list(given)}")
    if given:
        outputs = [(name, leaf) for name, (_, leaf) in zip(given, outputs, strict=True)]
    if len({name for name, _ in outputs}) != len(outputs) or not outputs:
        raise ValueError(f"expected results of distinct names, got {outputs}")
    return outputs


def recorded(example: ExampleRun, dynamic: Dynamic, *, specialize: bool) -> Program:
    """Return the program of a model, run once and for each named extent again."""
    model, tensors = example.model, example.tensors
    axes = _axes(tensors, example.names, dynamic)
    device = _device(tensors)

    def run(sizes: Sizes) -> Recording:
        recorder = ExportRecorder(
            *(device, paths_of(model), WHOLE),
            symbolic=bool(axes),
            specialize=specialize,
        )
        order = iter(range(len(tensors)))

        def resized(leaf: Any) -> Any:
            return (
                _resized(leaf, next(order), axes, sizes)
                if type(leaf) is Tensor
                else leaf
            )

        given, by_name = mapped(resized, (list(example.args), dict(example.named)))
        return record(model, tuple(given), by_name, recorder, sizes)

    base = {name: tensors[t].shape[a] for (t, a), name in axes.items()}
    recordings = [run(base)]
    for name in base:
        recordings.append(_other_run(run, base, [name]))
    if base:
        recordings += [_other_run(run, base, list(base), skip=1)]
    return align(recordings)


def _axes(
    tensors: Sequence[Tensor], names: Sequence[str], dynamic: Dynamic
) -> dict[tuple[int, int], str]:
    """The named extents by (input, axis).

    Raises:
        ValueError: there is no such input or axis, or an extent has two sizes.
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


def _resized(
    leaf: Tensor, number: int, axes: Mapping[Any, str], sizes: Sizes
) -> Tensor:
    """``leaf`` repeated or cut along its named axes."""
    array = innermost(leaf).numpy()
    for (position, axis), name in axes.items():
        if position == number and array.shape[axis] != sizes[name]:
            index = np.arange(sizes[name]) % max(array.shape[axis], 1)
            array = np.take(array, index, axis)
    return leaf if array.shape == leaf.shape else tensor(array)


def _other_run(
    run: Callable[[Sizes], Recording], base: Sizes, names: list[str], skip: int = 0
) -> Recording:
    """A run with other sizes of ``names``: the first of a few that the model takes."""
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
    return default_device()


def _expected(run: ExampleRun) -> tuple[dict[str, Any], list[Any]]:
    """The inputs of the example by name, and the model's results."""
    arrays = [innermost(leaf).numpy() for leaf in run.tensors]
    results = [leaf for _, leaf in leaves(run.model(*run.args, **run.named), "")]
    numbers = [np.asarray(_array(leaf)) for leaf in results]
    return dict(zip(run.names, arrays, strict=True)), numbers


def _array(leaf: Any) -> Any:
    value = getattr(leaf, "value", leaf)
    return innermost(value).numpy() if type(value) is Tensor else value
