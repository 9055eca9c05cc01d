"""Comparison of an ONNX model with its imported module on the same inputs."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import burn
from burn import Autodiff, Cpu, dtypes, ops
from burn.dtypes import DType
from burn.nn import InputError
from burn.tensor import Tensor
from burn_import.verification.bisect import Divergence, bisect
from burn_import.verification.errors import InputsError, check_sizes, named_extents
from burn_import.verification.inputs import check_arrays, random_inputs, stored_inputs
from burn_import.verification.session import difference, read_proto, run_model
from burn_ir.dim import Dim

#: The finite-difference step, relative to the parameters' magnitude.
_STEP = 1e-5


def derivative_error(model: Any, arrays: list[Any], seed: int = 0) -> float:
    """Return the relative error of one derivative, along a random direction.

    ``model`` and floating ``arrays`` are in float64. The function is a random
    weighting of all floating outputs; the direction is over all floating
    parameters, proportional to their magnitudes. The quotient is extrapolated from
    two steps (Richardson).

    Raises:
        InputsError: no output or no parameter is floating.
    """
    random = np.random.default_rng(seed)
    tracked = model.valid().to(Autodiff(Cpu()))
    boxes = [box for _, box in tracked.parameters() if dtypes.is_float(box.dtype)]
    if not boxes:
        raise InputsError("the module has no parameters to differentiate by")
    start = [box.held().numpy() for box in boxes]
    scales = [np.abs(a).mean() if a.size else 0.0 for a in start]
    turns = [
        (random.standard_normal(a.shape) * s).astype(a.dtype)
        for a, s in zip(start, scales, strict=True)
    ]
    gradients = _loss(tracked, arrays, seed).backward()
    exact = sum(
        float((gradients[box].numpy().astype(np.float64) * turn).sum())
        for box, turn in zip(boxes, turns, strict=True)
        if box in gradients
    )

    def at(step: float) -> float:
        for box, first, turn in zip(boxes, start, turns, strict=True):
            box.set(
                burn.tensor((first + step * turn).astype(first.dtype)).to(box.backend)
            )
        return float(_loss(tracked, arrays, seed).numpy())

    def quotient(step: float) -> float:
        return (at(step) - at(-step)) / (2 * step)

    wide, narrow = quotient(_STEP), quotient(_STEP / 2)
    numeric = (4 * narrow - wide) / 3
    return abs(exact - numeric) / max(abs(exact), abs(numeric), 1e-12)


def _loss(model: Any, arrays: list[Any], seed: int) -> Tensor:
    random = np.random.default_rng(seed + 1)
    result = model(*(burn.tensor(array) for array in arrays))
    results = result if isinstance(result, tuple) else (result,)
    total: Any = None
    for item in results:
        if not isinstance(item, Tensor) or not dtypes.is_float(item.dtype):
            continue
        weights = burn.tensor(random.standard_normal(item.shape).astype(item.dtype))
        part = ops.sum(item * weights)
        total = part if total is None else total + part
    if total is None:
        raise InputsError("the module has no output to differentiate")
    loss: Tensor = total
    return loss


#: Tolerated deviation, relative to the largest magnitude.
TOLERANCE = 1e-4


@dataclass(frozen=True)
class Row:
    """One output: both types, and the deviation."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    difference: float
    ok: bool


@dataclass(frozen=True)
class Verified:
    """All outputs, the reference engine, and the first divergence.

    ``gradient`` is the relative error of a derivative, if requested.
    """

    engine: str
    rows: tuple[Row, ...]
    divergence: Divergence | None = None
    gradient: float | None = None
    inputs: dict[str, str] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether every output agrees."""
        return all(row.ok for row in self.rows)


def input_types(model: onnx.ModelProto) -> dict[str, tuple[DType, list[Dim | str]]]:
    """Return the dtype and shape of each input without a stored value.

    Extents have the names that they have in an imported module.
    """
    from burn_import.frontends.onnx.reader import input_types

    return {
        name: (t.dtype, [n if isinstance(n, int) else str(n) for n in t.shape or ()])
        for name, t in input_types(model).items()
    }


def verify(
    path: str | Path,
    *,
    module: Any = None,
    inputs: Path | Mapping[str, Any] | None = None,
    reference: str | Path | None = None,
    sizes: Mapping[str, int] | None = None,
    seed: int = 0,
    engine: str = "",
    tolerance: float | None = None,
    bisecting: bool = False,
    gradients: bool = False,
) -> Verified:
    """Compare the module of the model at ``path`` with another engine, by output.

    The model is imported anew unless ``module`` is given, of a possibly edited file.
    ``inputs`` are arrays by name or a ``.npz`` file, else random. ``reference`` is an
    ONNX file of the same inputs and outputs to compare with. ``bisecting`` searches for
    the first node that differs, ``gradients`` compares a derivative of the import in
    float64 with a difference quotient.

    Raises:
        InputsError: the inputs do not fit.
        UnreadableFile, UnsupportedModel, InvalidModel: of the import.
    """
    from burn_import.loading import load

    path = Path(path)
    other = Path(reference) if reference is not None else path
    proto = read_proto(other)
    types = input_types(proto)
    arrays = _input_arrays(inputs, types, sizes, seed)
    with advice(types, is_random=inputs is None):
        expected, name = _results_of_file(other, arrays, engine)
        subject = load(path) if module is None else module
        results = results_of(subject, list(arrays.values()))
    triples = zip(proto.graph.output, results, expected, strict=True)
    rows = tuple(_row(output.name, a, b, tolerance) for output, a, b in triples)
    divergence = None
    if bisecting and not all(row.ok for row in rows):
        limit = TOLERANCE if tolerance is None else tolerance
        divergence = bisect(path, other, arrays, limit, is_module=module is not None)
    shown = {k: f"{v.dtype}{list(v.shape)}" for k, v in arrays.items()}
    gradient = _gradient_error(path, arrays, seed) if gradients else None
    return Verified(name, rows, divergence, gradient, shown)


def _results_of_file(
    path: Path, arrays: Mapping[str, Any], engine: str
) -> tuple[list[Any], str]:
    """Return the results of another engine, and its name.

    If it refuses the file, the importer's error is raised first.
    """
    from burn_import.loading import load

    try:
        return run_model(str(path), arrays, engine)
    except InputsError:
        load(path)
        raise


@contextmanager
def advice(types: Mapping[str, Any], *, is_random: bool) -> Iterator[None]:
    """Context that adds a hint on passing inputs to errors about inputs.

    Raises:
        InputsError: an engine or the module does not accept the inputs.
    """
    try:
        yield
    except (InputsError, InputError) as error:
        if getattr(error, "hint", "") or not is_random:
            raise InputsError(str(error), getattr(error, "hint", "")) from error
        names = ", ".join(sorted(named_extents(types)))
        sizes = f"--size NAME=NUMBER for other extents ({names}), or " if names else ""
        raise InputsError(
            str(error), f"The inputs are random: pass {sizes}--inputs FILE.npz."
        ) from error


def given_inputs(
    path: Path,
    inputs: Path | None = None,
    sizes: Mapping[str, int] | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Return inputs for the ONNX file at ``path``: those of a file, or random ones.

    Raises:
        InputsError: the inputs do not fit.
    """
    return _input_arrays(inputs, input_types(read_proto(path)), sizes, seed)


def check_runs(
    path: Path, inputs: Mapping[str, Any], call: Callable[[], Any], is_random: bool
) -> None:
    """Check that the module's ``call`` runs on ``inputs``.

    Raises:
        InputsError: neither it nor another engine accepts them.
    """
    with advice(input_types(read_proto(path)), is_random=is_random):
        try:
            call()
        except ValueError:
            run_model(str(path), inputs)
            raise


def _input_arrays(
    inputs: Path | Mapping[str, Any] | None,
    types: Mapping[str, Any],
    sizes: Mapping[str, int] | None,
    seed: int,
) -> dict[str, Any]:
    """Return the arrays of a file, those passed, or random ones."""
    if inputs is None:
        return random_inputs(types, sizes, seed)
    check_sizes(sizes or {}, types)
    if isinstance(inputs, Path):
        arrays = stored_inputs(inputs, list(types))
    else:
        arrays = dict(inputs)
    check_arrays(arrays, types)
    return arrays


def _gradient_error(path: Path, arrays: Mapping[str, Any], seed: int) -> float:
    from burn_import.loading import load
    from burn_import.options import Options

    double = load(path, Options(dtype="float64"))
    return derivative_error(double, [_in_double(a) for a in arrays.values()], seed)


def results_of(model: Any, arrays: list[Any]) -> list[Any]:
    """Return the flat results of a module as arrays.

    A standalone module has its own tensor class.
    """
    own = sys.modules.get(type(model).__module__)
    as_tensor = getattr(own, "tensor", burn.tensor)
    result = model(*(as_tensor(array) for array in arrays))
    return [_as_array(item) for item in _flat(result)]


def _in_double(array: Any) -> Any:
    return array.astype(np.float64) if dtypes.is_float(array.dtype) else array


def _flat(result: Any) -> list[Any]:
    if isinstance(result, tuple):
        return list(result)
    return [result]


def _as_array(item: Any) -> Any:
    if isinstance(item, list):
        return [_as_array(part) for part in item]
    if isinstance(item, dict):
        return {key: _as_array(value) for key, value in item.items()}
    return item.numpy() if hasattr(item, "numpy") else item


def default_tolerance(dtype: np.dtype[Any]) -> float:
    """Return how far results of a dtype may be apart: two units of narrow floats."""
    if not dtypes.is_float(dtype):
        return TOLERANCE
    return max(TOLERANCE, 2 * dtypes.step(dtype))


def _row(name: str, actual: Any, expected: Any, tolerance: float | None) -> Row:
    if isinstance(expected, list) or expected is None or actual is None:
        error = difference(actual or [], expected or [])
        limit = TOLERANCE if tolerance is None else tolerance
        return Row(name, "list", (), error, error <= limit)
    a, b = np.asarray(actual), np.asarray(expected)
    error = difference(a, b)
    same = a.dtype == b.dtype or b.dtype.kind in "UO"
    limit = default_tolerance(b.dtype) if tolerance is None else tolerance
    return Row(name, dtypes.name_of(a.dtype), a.shape, error, same and error <= limit)
