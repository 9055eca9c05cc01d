"""The laws of operators, over every declared operator at every version."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from burn import Tensor, dtypes
from burn.backend.autodiff import Autodiff
from burn.backend.cpu import Cpu
from burn.primitive import recording
from burn_ir import RawGraph, evaluate, operators
from tests.laws import compare, emitted, models, opaque, oracle
from tests.strategies import Example, cases, examples
from tests.strategies.registry import Array, Key, Maybe, Operand

#: Operators whose examples are tested elsewhere, with the reason.
WITHOUT_STRATEGY: dict[str, str] = {
    "CastMap": "examples cannot hold maps: tests/importer/onnx/test_maps.py",
    "DictVectorizer": "examples cannot hold maps: tests/importer/onnx/test_maps.py",
    "Gradient": "it names values: tests/importer/onnx/test_gradient_operator.py",
    "ReorderInput": "onnxruntime's result is in blocks; tests/ir/test_blocked.py",
    "ZipMap": "examples cannot hold maps: tests/importer/onnx/test_maps.py",
}

#: Operators whose results may have an unknown rank before they run, with the reason.
HIDES_RANK: dict[str, str] = {
    "If": "the branches may differ in it",
    "Squeeze": "without axes, a symbolic extent of 1 would go",
}

#: Operators that read an operand at run time, with the reason.
READS: dict[str, str] = {
    "If": "the condition chooses the branch",
    "Loop": "the count and the condition say how many rounds there are",
    "OptionalGetElement": "None has no type to show",
    "OptionalHasElement": "None has no type to show",
}

#: Operators without a gradient, with the reason.
NO_GRADIENT: dict[str, str] = {
    "BitCast": "bits have no gradient",
    "Detach": "no gradient is what it is for: tests/importer/test_detach.py",
}

#: (operator, version) where onnxruntime contradicts the specification, which is cited.
DISAGREES: dict[tuple[str, int], str] = {
    **{
        ("QuantizeLinear", version): "the type of `y_scale` or the attribute "
        "`precision` determines the precision of the division; it divides in float32"
        for version in (19, 21, 23, 24, 25, 28)
    },
    ("BatchNormalization", 7): "`saved_var`, the `Saved variance`, is inverse there",
    ("BatchNormalization", 9): "`saved_var`, the `Saved variance`, is inverse there",
    ("DFT", 17): "it transforms the input's length, not `dft_length`, back to a signal",
    ("DFT", 20): "it transforms the input's length, not `dft_length`, back to a signal",
    ("Dropout", 7): "the mask says what was kept, which in a test is everything",
    **{
        (
            "CastLike",
            version,
        ): "`round_mode` `down` rounds towards zero; it expands to a "
        "Cast without the attribute, which rounds up"
        for version in (24, 25)
    },
    ("SplitToSequence", 11): "keepdims is ignored if split is specified",
    ("SplitToSequence", 24): "keepdims is ignored if split is specified",
    ("Dropout", 10): "the mask says what was kept, which in a test is everything",
    **{
        ("Dropout", version): "a seed draws the numbers of ONNX's reference"
        for version in (12, 13, 22)
    },
    ("Col2Im", 18): "block elements are dilated along every axis, of volumes too",
    ("MaxUnpool", 9): "indices count what was pooled, not output_shape",
    ("MaxUnpool", 11): "indices count what was pooled, not output_shape",
    ("MaxUnpool", 22): "indices count what was pooled, not output_shape",
    ("Resize", 11): "scaled extents are not rounded before corners are aligned",
    ("Resize", 13): "scaled extents are not rounded before corners are aligned",
    ("Resize", 18): "scaled extents are not rounded before corners are aligned",
    ("Resize", 19): "scaled extents are not rounded before corners are aligned",
}

#: Random operators, whose distribution `test_random.py` checks.
RANDOM = frozenset(
    {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike"}
    | {"RandomUniform", "RandomUniformLike"}
)

#: (operator, version) that neither onnxruntime nor the reference runs.
UNCHECKED: dict[tuple[str, int], str] = {}

EVERY: list[Any] = [
    pytest.param(key, version, id=f"{key[1]}-{version}")
    for key, op in sorted(operators().items())
    for version in op.versions
    if key[1] not in WITHOUT_STRATEGY
]
NEWEST = [
    pytest.param(key, op.versions[-1], id=key[1])
    for key, op in sorted(operators().items())
    if key[1] not in WITHOUT_STRATEGY
]


def is_run_by_others(case: Any) -> bool:
    """Return whether onnxruntime, or the reference, gives the values of an operator.

    Only this project runs the domain ``burn``: the tests of passes compare its values.
    """
    domain, name = case.values[0]
    return domain != "burn" and name not in RANDOM


every_version_that_others_run = pytest.mark.parametrize(
    ("key", "version"), [case for case in EVERY if is_run_by_others(case)]
)
every_other_version = pytest.mark.parametrize(
    ("key", "version"), [case for case in EVERY if not is_run_by_others(case)]
)
newest_version = pytest.mark.parametrize(("key", "version"), NEWEST)
few = settings(max_examples=max(3, settings().max_examples // 5))


@pytest.mark.parametrize("key", sorted(operators()), ids=lambda key: key[1])
def test_every_operator_has_a_strategy(key: Key) -> None:
    assert (key in cases()) != (key[1] in WITHOUT_STRATEGY)


def computed(key: Key, version: int, example: Example, stored: bool) -> list[Any]:
    """Return the values of an operator, whose types are those that it infers."""
    graph = models.built(key, version, example, stored)
    values = evaluate(graph, models.operands(example, stored))
    check_types(graph, key, values, {})
    return arrays_of(values)


def arrays_of(values: list[Any]) -> list[Any]:
    """Return tensors as arrays, also those in lists."""
    return [models.mapped(lambda y: y.numpy(), value) for value in values]


@every_version_that_others_run
@few
@given(data=st.data(), stored=st.booleans())
@pytest.mark.sampled(4)
def test_value_is_that_of_onnxruntime(
    key: Key, version: int, data: st.DataObject, stored: bool
) -> None:
    example = data.draw(examples(key, version))
    got = computed(key, version, example, stored)
    if (key[1], version) in DISAGREES and example.expected is not None:
        compare.assert_close(got, example.expected, example)
        return
    compared_version = version
    if example.newer is not None:
        compared_version, attrs = example.newer
        example = replace(example, attrs=attrs)
    model = models.onnx_model(key, compared_version, example, stored)
    feeds = models.by_name(example, stored)
    expected = oracle.reference_results(key, version, model, feeds, example)
    if expected is None:
        assert (key[1], version) in UNCHECKED, "no engine runs it: give `expected`"
        return
    compare.assert_close(got, expected, example)


@every_other_version
@few
@given(data=st.data(), stored=st.booleans())
@pytest.mark.sampled(6)
def test_inferred_type_is_that_of_the_value(
    key: Key, version: int, data: st.DataObject, stored: bool
) -> None:
    computed(key, version, data.draw(examples(key, version)), stored)


@newest_version
@few
@given(data=st.data(), stored=st.booleans())
@pytest.mark.sampled(4)
def test_inferred_type_holds_for_every_size(
    key: Key, version: int, data: st.DataObject, stored: bool
) -> None:
    example = data.draw(examples(key, version))
    graph = models.built(key, version, example, stored, symbolic=True)
    positions = models.run_time(example, stored)
    names = [models.axis_names(example, i) for i in positions]
    for grown in (False, True) if example.resizable else (False,):
        given_now = grow(example, positions, stored) if grown else example
        inputs = models.operands(given_now, stored)
        symbols = compare.bound(names, arrays_of(inputs))
        check_types(graph, key, evaluate(graph, inputs), symbols)


def check_types(
    graph: Any, key: Key, values: list[Any], symbols: dict[str, int]
) -> None:
    for name, value in zip(graph.outputs, arrays_of(values), strict=True):
        hides_rank = key[1] in HIDES_RANK
        inferred = graph.type(name)
        compare.assert_type(inferred, value, symbols, hides_rank)


def grow(example: Example, positions: list[int], stored: bool) -> Example:
    """Return the example with every non-constant named dimension one larger."""
    fixed = {
        name
        for i in example.constants(stored)
        if example.inputs[i] is not None
        for name in models.axis_names(example, i)
    }
    inputs = list(example.inputs)
    for i in positions:
        array = inputs[i]
        if not isinstance(array, np.ndarray):
            continue
        names = models.axis_names(example, i)
        shape = [
            n + (isinstance(name, str) and name not in fixed)
            for n, name in zip(array.shape, names, strict=True)
        ]
        inputs[i] = np.resize(array, shape)
    return replace(example, inputs=inputs)


@newest_version
@few
@given(data=st.data(), stored=st.booleans())
@pytest.mark.sampled(6)
def test_lower_looks_at_nothing_it_may_not(
    key: Key, version: int, data: st.DataObject, stored: bool
) -> None:
    """Results are equal if the contents of operands are unknown."""
    if key[1] in READS:
        pytest.skip(READS[key[1]])
    example = data.draw(examples(key, version))
    graph = models.built(key, version, example, stored)
    inputs = models.operands(example, stored)
    expected = evaluate(graph, inputs)
    with recording(opaque.OPAQUE):
        got = evaluate(graph, [opaque.hide(x) for x in inputs])
    revealed = [opaque.reveal(y) for y in got]
    compare.assert_same(arrays_of(revealed), arrays_of(expected))


@newest_version
@few
@given(data=st.data(), stored=st.booleans())
@pytest.mark.sampled(6)
def test_printed_source_computes_the_same_bits(
    key: Key, version: int, data: st.DataObject, stored: bool
) -> None:
    example = data.draw(examples(key, version))
    graph = models.built(key, version, example, stored)
    inputs = models.operands(example, stored)
    got = emitted.run_printed(graph, inputs)
    expected = evaluate(graph, inputs)
    compare.assert_same(arrays_of(got), arrays_of(expected))


@newest_version
@few
@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
@pytest.mark.sampled(4)
def test_gradient_is_the_directional_derivative(
    key: Key, version: int, data: st.DataObject, seed: int
) -> None:
    if key[1] in NO_GRADIENT:
        pytest.skip(NO_GRADIENT[key[1]])
    example = in_float64(data.draw(examples(key, version)))
    graph = models.built(key, version, example, stored=False)
    form = arrays_of(models.operands(example, stored=False))
    arrays = leaves(form)
    discrete = [
        index in example.discrete
        for index, value in zip(
            models.run_time(example, stored=False), form, strict=True
        )
        for _ in leaves(value)
    ]
    where = [
        i for i, x in enumerate(arrays) if x.dtype == np.float64 and not discrete[i]
    ]
    floating = [
        graph.types[y].dtype == np.float64 if y in graph.types else False
        for y in graph.outputs
    ]
    if not (where and any(floating) and example.smooth):
        return  # nothing to differentiate
    rng = np.random.default_rng(seed)
    directions = {i: rng.standard_normal(arrays[i].shape) for i in where}
    got = slope_by_tape(graph, form, directions, seed)
    expected = slope_by_difference(graph, form, directions, seed)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


def in_float64(example: Example) -> Example:
    """Return the example with floating operands and constants in float64."""
    inputs = [
        x if i in example.discrete else widened(x) for i, x in enumerate(example.inputs)
    ]
    attrs = {
        name: wide_body(v) if isinstance(v, RawGraph) else v
        for name, v in example.attrs.items()
    }
    return replace(example, inputs=inputs, attrs=attrs)


def wide_body(body: RawGraph) -> RawGraph:
    inputs = {
        n: t.with_dtype(dtypes.float64) if dtypes.is_float(t.dtype) else t
        for n, t in body.inputs.items()
    }
    constants = {n: wide(x) for n, x in body.constants.items()}
    return replace(body, inputs=inputs, constants=constants)


def widened(operand: Operand) -> Operand:
    if isinstance(operand, Maybe):
        value, like = (models.mapped(wide, x) for x in (operand.value, operand.like))
        return Maybe(value, like)
    result: Operand = models.mapped(wide, operand)
    return result


def wide(array: Array) -> Array:
    return array.astype(np.float64) if dtypes.is_float(array.dtype) else array


def leaves(value: Any) -> list[Any]:
    """Return the arrays or tensors in nested lists, in order."""
    if isinstance(value, list):
        return [leaf for item in value for leaf in leaves(item)]
    return [] if value is None else [value]


def filled(form: Any, items: list[Any]) -> Any:
    """Return ``form`` with its leaves replaced by ``items``."""
    rest = iter(items)
    return models.mapped(lambda _: next(rest), form)


def loss(graph: Any, inputs: list[Any], seed: int) -> Any:
    """Return a scalar function of all floating results."""
    rng = np.random.default_rng(seed)
    total: Any = 0.0
    for y in leaves(evaluate(graph, inputs)):
        if dtypes.is_float(y.dtype):
            total = total + (y * rng.standard_normal(y.shape)).sum()
    return total


def slope_by_tape(
    graph: Any, form: list[Any], directions: dict[int, Array], seed: int
) -> float:
    tape = Autodiff(Cpu())
    inputs = [Tensor(tape.from_numpy(x), tape) for x in leaves(form)]
    for i in directions:
        inputs[i] = inputs[i].require_grad()
    total = loss(graph, filled(form, inputs), seed)
    grads = total.backward() if isinstance(total, Tensor) else {}
    return sum(
        float(np.vdot(grads[inputs[i]].numpy(), d))
        for i, d in directions.items()
        if inputs[i] in grads
    )


def slope_by_difference(
    graph: Any, form: list[Any], directions: dict[int, Array], seed: int
) -> float:
    step = 1e-6
    ends = []
    for sign in (1, -1):
        moved = [
            np.asarray(x + sign * step * directions[i]) if i in directions else x
            for i, x in enumerate(leaves(form))
        ]
        given = filled(form, [Tensor(x, Cpu()) for x in moved])
        ends.append(float(loss(graph, given, seed)))
    return (ends[0] - ends[1]) / (2 * step)


def test_list_operators_unchecked_by_onnxruntime() -> None:
    """Print the versions that onnxruntime could not check; run with ``-s``."""
    for (domain, name, version), references in sorted(oracle.REFERENCES.items()):
        if references != {"onnxruntime"}:
            print(f"{domain}{name}-{version}: {', '.join(sorted(references))}")
