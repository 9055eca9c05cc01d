"""Recurrent layers by oneDNN are NumPy's, eagerly, in plans and under gradients."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import burn
from burn import Autodiff, Cpu, nn, ops
from burn.backend.cpu.bind import sequence
from burn.backend.cpu.bind.calls import StepCall
from burn.backend.cpu.onednn.binding import engine
from tests.runtime.onednn import assert_close, both, laid_out, needs_onednn, normal
from tests.runtime.programs import calls_of, has_numpy_products
from tests.sampling import example_count

pytestmark = needs_onednn

#: How many gates and states a layer has.
LAYERS = {"lstm": (4, 2), "gru": (3, 1), "rnn": (1, 1)}
DIRECTIONS = {"forward": 1, "reverse": 1, "bidirectional": 2}
extents = st.sampled_from([1, 2, 3, 5, 16, 17, 33])


def operands(name: str, direction: str, *extents: int, **parts: bool) -> list[Any]:
    """Those of a layer for time, batch, inputs and hidden, states and all."""
    time, batch, inputs, hidden = extents
    (gates, states), count = LAYERS[name], DIRECTIONS[direction]
    rows, scale = gates * hidden, np.float32(hidden**-0.5)
    results = [
        normal(time, batch, inputs),
        normal(count, rows, inputs, seed=1) * scale,
        normal(count, rows, hidden, seed=2) * scale,
        normal(count, 2 * rows, seed=3) if parts.get("bias", True) else None,
    ]
    for index in range(states):
        there = parts.get(("h0", "c0")[index], True)
        state = normal(count, batch, hidden, seed=4 + index)
        results.append(state if there else None)
    if name == "lstm":
        peephole = normal(count, 3 * hidden, seed=6)
        results += [None, peephole if parts.get("peephole") else None]
    return results


def layer(name: str, **options: Any) -> Callable[..., Any]:
    """The layer, all of its results in a row."""

    def run(*given: Any) -> Any:
        results = getattr(ops, name)(*given, **options)
        return ops.concat([ops.reshape(part, (-1,)) for part in results])

    return run


def tensors(given: list[Any]) -> list[Any]:
    return [None if x is None else burn.from_numpy(x) for x in given]


@settings(max_examples=example_count(60))
@given(
    name=st.sampled_from(list(LAYERS)),
    direction=st.sampled_from(list(DIRECTIONS)),
    extents=st.tuples(extents, extents, extents, extents),
    parts=st.fixed_dictionaries(
        {key: st.booleans() for key in ("bias", "h0", "c0", "peephole")}
    ),
    after=st.booleans(),
)
def test_layers(
    name: str, direction: str, extents: Any, parts: dict[str, bool], after: bool
) -> None:
    given = operands(name, direction, *extents, **parts)
    options: dict[str, Any] = {"direction": direction, "hidden_size": extents[3]}
    if name == "gru":
        options["linear_before_reset"] = after
    if name == "rnn" and after:
        options["activations"] = ("Sigmoid",) * DIRECTIONS[direction]
    actual, expected = both(layer(name, **options), *given)
    assert_close(actual, expected)


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("name", LAYERS)
def test_shapes_and_order_of_results(name: str, direction: str) -> None:
    given = operands(name, direction, 9, 3, 4, 5)
    options = {"direction": direction}
    for part in range(1 + LAYERS[name][1]):
        compared = both(lambda *a, p=part: getattr(ops, name)(*a, **options)[p], *given)
        assert_close(*compared)


@pytest.mark.parametrize("name", LAYERS)
def test_batch_first_and_operands_in_any_order(name: str) -> None:
    x, w, r, b, *rest = operands(name, "bidirectional", 9, 3, 4, 5)
    rest = [part.transpose(1, 0, 2) for part in rest[: LAYERS[name][1]]]
    w, r = laid_out(w, (2, 0, 1)), laid_out(r, (0, 2, 1))
    given = [x.transpose(1, 0, 2), w, r, laid_out(b, (1, 0)), *rest]
    for part in range(1 + LAYERS[name][1]):

        def run(*a: Any, part: int = part) -> Any:
            return getattr(ops, name)(*a, direction="bidirectional", layout=1)[part]

        assert_close(*both(run, *given))


@pytest.mark.parametrize("width", [1, 8])
def test_one_array_in_two_roles_is_packed_for_both(width: int) -> None:
    x, _, r, *_ = operands("gru", "forward", 9, 3, width, width)
    function = layer("gru", linear_before_reset=True)
    assert_close(*both(lambda x, r: function(x, r, r), x, r))
    assert_close(*both(lambda x, r: layer("gru")(x, r, r), x, r))


@pytest.mark.parametrize("name", ["lstm", "gru", "rnn"])
def test_large_layers(name: str) -> None:
    """Their products are others: weights are packed for them otherwise."""
    given = operands(name, "forward", 3, 32, 300, 512)
    assert_close(*both(layer(name), *given))


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("time", [1, 9])
def test_plans_have_no_kernel_but_the_library(
    name: str, direction: str, time: int
) -> None:
    x, *rest = operands(name, direction, time, 3, 4, 5, c0=False)
    function, weights = layer(name, direction=direction), tensors(rest)
    compiled = burn.compile(lambda x: function(x, *weights))
    for seed in range(3):
        x = burn.from_numpy(normal(time, 3, 4, seed=seed))
        with engine.numpy_only():
            expected = function(x, *weights)
        assert_close(compiled(x).numpy(), expected.numpy())
    assert not compiled.notes
    assert not has_numpy_products(compiled)


@pytest.mark.parametrize("time", [1, 9])
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("name", LAYERS)
def test_weights_that_are_computed(name: str, after: bool, time: int) -> None:
    options = {"linear_before_reset": after} if name == "gru" else {}
    function = layer(name, direction="bidirectional", **options)
    compiled = burn.compile(function)
    parts = {"peephole": after, "bias": after}
    for factor in map(np.float32, range(1, 5)):
        given = operands(name, "bidirectional", time, 3, 4, 5, **parts)
        given = tensors([part if part is None else part * factor for part in given])
        with engine.numpy_only():
            expected = function(*given)
        assert_close(compiled(*given).numpy(), expected.numpy())
    assert not has_numpy_products(compiled)


@pytest.mark.parametrize("name", ["gru", "conv"])
def test_plans_that_numpy_computes_at_first(name: str) -> None:
    """Packed weights would be those of another run: their memory is the plan's."""
    given = [normal(2, 3, 9, 8), normal(4, 3, 3, 3, seed=1)]
    if name == "gru":
        given = operands(name, "forward", 9, 3, 4, 5)
    function = layer(name) if name == "gru" else ops.conv
    compiled = burn.compile(function)
    with engine.numpy_only():
        for _ in range(2):
            compiled(*tensors(given))
    for factor in map(np.float32, range(1, 4)):
        scaled = tensors([part * factor for part in given])
        with engine.numpy_only():
            expected = function(*scaled)
        assert_close(compiled(*scaled).numpy(), expected.numpy())


def test_relu_is_the_librarys_in_plans_alone() -> None:
    """It makes a number of NaN."""
    given = operands("rnn", "reverse", 9, 3, 4, 5)
    function = layer("rnn", direction="reverse", activations=("Relu",))
    x, *weights, first = tensors(given)
    boxes = [burn.Parameter(weight) for weight in weights]
    compiled = burn.compile(lambda x, first: function(x, *boxes, first))
    for _ in range(3):
        actual = compiled(x, first)
    assert_close(actual.numpy(), function(*tensors(given)).numpy())
    assert not has_numpy_products(compiled)
    given[0][1, 2, 3] = np.nan
    assert np.isnan(function(*tensors(given)).numpy()).any()


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", range(5))
def test_what_is_not_finite(name: str, value: float, place: int) -> None:
    given = operands(name, "forward", 9, 3, 4, 5)
    given[place].flat[1] = value
    actual, expected = both(layer(name), *given)
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


#: What the library has nothing for.
OTHERS: list[tuple[str, dict[str, Any]]] = [
    ("lstm", {"clip": 0.5}),
    ("lstm", {"input_forget": True}),
    ("lstm", {"activations": ("Sigmoid", "Tanh", "Softsign")}),
    ("gru", {"activations": ("HardSigmoid", "Tanh")}),
    ("gru", {"clip": 0.5}),
    ("rnn", {"activations": ("Softplus",)}),
    ("rnn", {"activations": ("Relu",)}),
]


@pytest.mark.parametrize(("name", "options"), OTHERS)
def test_others_are_numpys(name: str, options: Any) -> None:
    given = tensors(operands(name, "forward", 9, 3, 4, 5))
    with engine.numpy_only():
        expected = layer(name, **options)(*given)
    with engine.whatever_size():
        actual = layer(name, **options)(*given)
    np.testing.assert_array_equal(actual.numpy(), expected.numpy())


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_lengths(name: str, direction: str) -> None:
    states = LAYERS[name][1]
    given = operands(name, direction, 9, 3, 4, 5)[: 4 + states]
    lengths = burn.from_numpy(np.array([4, 9, 1], np.int32))
    function = layer(name, direction=direction)
    compiled = burn.compile(function)
    for whole in (False, True, False, True):
        ends = burn.from_numpy(np.full(3, 9, np.int32)) if whole else lengths
        scaled = [part * np.float32(1 + whole) for part in given]
        with engine.numpy_only():
            expected = function(*tensors(scaled), ends)
        actual = compiled(*tensors(scaled), ends)
        assert_close(actual.numpy(), expected.numpy())


@pytest.mark.parametrize("name", LAYERS)
def test_lengths_that_are_all_the_same(name: str) -> None:
    """They are known in plans, where they do not depend on the call."""
    given = operands(name, "bidirectional", 9, 3, 4, 5)[: 4 + LAYERS[name][1]]
    function = layer(name, direction="bidirectional")
    _, *weights = tensors(given)
    for whole in (True, False):
        lengths = burn.from_numpy(np.array([9, 9, 9 if whole else 4], np.int32))
        compiled = burn.compile(
            lambda x, n=lengths: function(x, *weights, n), generated=False
        )
        for seed in range(3):
            x = burn.from_numpy(normal(9, 3, 4, seed=seed))
            with engine.numpy_only():
                expected = function(x, *weights, lengths)
            assert_close(compiled(x).numpy(), expected.numpy())
        by_numpy = has_numpy_products(compiled)
        # The first states of the direction from the end are not those of its cells.
        assert by_numpy == (not whole and name != "gru")


def test_wrong_shapes_are_errors_as_without_the_library() -> None:
    x, w, r, *_ = tensors(operands("gru", "forward", 9, 3, 4, 5))
    with pytest.raises(ValueError, match="expected weights of direction"):
        ops.gru(x, w, r, direction="bidirectional")
    with pytest.raises(ValueError, match="expected hidden_size 5, got 6"):
        ops.gru(x, w, r, hidden_size=6)
    with pytest.raises(ValueError, match="matmul"):
        ops.gru(x, r, r)


VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "activations": ("lstm", {"activations": ("HardSigmoid", "Softsign", "Relu")}),
    "clip": ("lstm", {"clip": 0.5, "input_forget": True}),
    "elu": ("gru", {"activations": ("Softplus", "Elu"), "activation_alpha": (0.7,)}),
    "affine": ("rnn", {"activations": ("ScaledTanh",)}),
}


@pytest.mark.parametrize("is_engine_used", [False, True])
@pytest.mark.parametrize("is_long", [False, True])
@pytest.mark.parametrize("variant", VARIANTS)
def test_plans_of_variants_call_numpy_step_by_step(
    variant: str, is_long: bool, is_engine_used: bool, monkeypatch: Any
) -> None:
    if is_long:
        monkeypatch.setattr(sequence, "MOST_TRACED", 20)
    name, options = VARIANTS[variant]
    given = operands(name, "forward", 5, 3, 4, 5)[: 4 + LAYERS[name][1]]
    _, *weights = tensors(given)
    with engine.whatever_size() if is_engine_used else engine.numpy_only():
        function = layer(name, **options)
        compiled = burn.compile(lambda x, n: function(x, *weights, n))
        for seed, ends in enumerate(([5, 5, 5], [1, 4, 5], [0, 2, 3], [5, 1, 1])):
            x = burn.from_numpy(normal(5, 3, 4, seed=seed))
            lengths = burn.from_numpy(np.array(ends, np.int32))
            actual, expected = compiled(x, lengths), function(x, *weights, lengths)
            assert_close(actual.numpy(), expected.numpy())
        assert (StepCall in calls_of(compiled)) == is_long


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
@pytest.mark.parametrize("compiled", [False, True])
def test_training(kind: Any, compiled: bool) -> None:
    """Weights change in every step: what was packed of them is never stale."""

    def trained(fast: bool) -> list[Any]:
        model = kind(4, 5, num_layers=2, bidirectional=True)
        boxes = [box for _, box in model.parameters()]
        for index, box in enumerate(boxes):
            box.set(burn.from_numpy(normal(*box.value.shape, seed=index) * 0.4))
        model.to(Autodiff(Cpu()))

        def step(x: Any) -> Any:
            y, _ = model(x)
            grads = (y * y).sum().backward()
            for box in boxes:
                box.set(box.value.detach() - grads[box] * 0.01)
            return y.detach()

        run = burn.compile(step) if fast and compiled else step
        results = [run(burn.from_numpy(normal(9, 3, 4, seed=s))) for s in range(4)]
        return [*results, *(box.value for box in boxes)]

    result = trained(fast=True)
    with engine.numpy_only():
        expected = trained(fast=False)
    for one, other in zip(result, expected, strict=True):
        assert_close(one.numpy(), other.numpy(), 3e-5)


@pytest.mark.parametrize("name", LAYERS)
def test_weights_are_packed_once(name: str) -> None:
    given = operands(name, "bidirectional", 9, 3, 40, 200, peephole=False)
    count, session = LAYERS[name][1], engine.current()
    assert session is not None
    function, weights = layer(name, direction="bidirectional"), tensors(given[1:4])
    del given

    def call(time: int, batch: int) -> None:
        states = [normal(2, batch, 200) for _ in range(count)]
        function(*tensors([normal(time, batch, 40)]), *weights, *tensors(states))

    empty = session.packed.size()
    call(9, 3)
    before = session.packed.size()
    for time, batch in ((10, 3), (12, 1), (9, 17), (8, 64)):
        call(time, batch)
    assert session.packed.size() == before > empty
    weights.clear()
    assert session.packed.size() == empty
