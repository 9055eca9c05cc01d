"""Gradients of recurrent layers: one primitive, eagerly and in plans, by every engine.

They are compared with those through the body of the layer, step by step.
"""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import burn
from burn import Autodiff, Cpu, ops
from burn.backend.cpu.onednn.binding import engine
from burn.ops.recurrence import Kind
from tests.runtime.cpu.onednn.test_recurrent import DIRECTIONS, LAYERS, operands
from tests.runtime.onednn import assert_close, needs_onednn, normal
from tests.runtime.programs import has_numpy_products
from tests.sampling import example_count

extents = st.sampled_from([1, 2, 3, 9])


def losses(name: str, lengths: Any, options: dict[str, Any], parts: Any) -> Any:
    """The sum of what results count, of the ``parts`` of them that are used."""

    def loss(*given: Any) -> Any:
        operands = list(given)
        if lengths is not None:
            place = 4 + LAYERS[name][1]
            operands[place : place + 1] = [burn.from_numpy(lengths)]
        results = getattr(ops, name)(*operands, **options)
        total: Any = 0.0
        for seed, result in enumerate(results):
            if seed in parts:
                count = burn.from_numpy(normal(*result.shape, seed=40 + seed))
                total = total + ops.sum(result * count)
        return total

    return loss


def gradients(loss: Any, given: list[Any]) -> list[Any]:
    tape = Autodiff(Cpu())
    leaves = [
        None if x is None else burn.from_numpy(x, tape).require_grad() for x in given
    ]
    grads = loss(*leaves).backward()
    return [None if x is None else grads[x].numpy() for x in leaves]


def through_the_body(
    name: str, loss: Any, given: list[Any], monkeypatch: Any
) -> list[Any]:
    """The gradients step by step, which no engine computes at once."""
    with monkeypatch.context() as patch, engine.numpy_only():
        patch.setattr(Kind, "is_usual", lambda *_: False)
        return gradients(loss, given)


def compiled_gradients(loss: Any, given: list[Any], runs: int = 3) -> Any:
    """The gradients in a plan, of the last call, and the plan."""
    there = [i for i, x in enumerate(given) if x is not None]
    boxes = [burn.Parameter(burn.from_numpy(given[i])) for i in there]
    tape = Autodiff(Cpu())

    def run(*arrays: Any) -> Any:
        leaves: list[Any] = [None] * len(given)
        for i, array in zip(there, arrays, strict=True):
            leaves[i] = array.to(tape).require_grad()
        grads = loss(*leaves).backward()
        return [grads[leaves[i]] for i in there]

    plan = burn.compile(run)
    for _ in range(runs):
        found = iter(plan(*(box.value for box in boxes)))
    return [None if x is None else next(found).numpy() for x in given], plan


def compare(actual: list[Any], expected: list[Any]) -> None:
    for one, other in zip(actual, expected, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            assert_close(one, other)


@settings(max_examples=example_count(25), deadline=None)
@given(
    name=st.sampled_from(list(LAYERS)),
    direction=st.sampled_from(list(DIRECTIONS)),
    extents=st.tuples(extents, extents, extents, extents),
    parts=st.fixed_dictionaries(
        {key: st.booleans() for key in ("bias", "h0", "c0", "peephole")}
    ),
    used=st.sets(st.integers(0, 2), min_size=1),
    after=st.booleans(),
    ends=st.one_of(st.none(), st.lists(st.integers(0, 9), min_size=9, max_size=9)),
)
def test_gradients(
    name: str,
    direction: str,
    extents: Any,
    parts: dict[str, bool],
    used: set[int],
    after: bool,
    ends: Any,
) -> None:
    given = operands(name, direction, *extents, **parts)
    options: dict[str, Any] = {"direction": direction}
    if name == "gru":
        options["linear_before_reset"] = after
    if name == "rnn":
        options["activations"] = ("Relu" if after else "Sigmoid",) * DIRECTIONS[
            direction
        ]
    if name == "lstm":
        options["input_forget"] = after
    lengths = None
    if ends is not None:
        lengths = np.minimum(ends[: extents[1]], extents[0]).astype(np.int32)
    used = used & {*range(1 + LAYERS[name][1])} or {0}
    loss = losses(name, lengths, options, used)
    with pytest.MonkeyPatch.context() as patch:
        expected = through_the_body(name, loss, given, patch)
    with engine.numpy_only():
        compare(gradients(loss, given), expected)
    with engine.whatever_size():
        compare(gradients(loss, given), expected)
    compare(compiled_gradients(loss, given)[0], expected)


@needs_onednn
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("name", LAYERS)
def test_plans_have_no_kernel_but_the_library(name: str, direction: str) -> None:
    given = operands(name, direction, 9, 3, 4, 5)
    loss = losses(name, None, {"direction": direction}, {0, 1, 2})
    with engine.numpy_only():
        expected = gradients(loss, given)
    actual, plan = compiled_gradients(loss, given)
    compare(actual, expected)
    assert not has_numpy_products(plan)


@pytest.mark.parametrize("layout", [0, 1])
@pytest.mark.parametrize("lengths", [None, [0, 9, 1]])
@pytest.mark.parametrize("name", LAYERS)
def test_batch_first(name: str, lengths: Any, layout: int, monkeypatch: Any) -> None:
    x, w, r, b, *rest = operands(name, "bidirectional", 9, 3, 4, 5)
    if layout:
        x = x.transpose(1, 0, 2)
        count = LAYERS[name][1]
        rest[:count] = [part.transpose(1, 0, 2) for part in rest[:count]]
    given = [x, w, r, b, *rest]
    ends = None if lengths is None else np.array(lengths, np.int32)
    options = {"direction": "bidirectional", "layout": layout}
    loss = losses(name, ends, options, {0, 1})
    expected = through_the_body(name, loss, given, monkeypatch)
    compare(gradients(loss, given), expected)
    compare(compiled_gradients(loss, given)[0], expected)


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("name", LAYERS)
def test_no_steps(name: str, direction: str, monkeypatch: Any) -> None:
    given = operands(name, direction, 0, 3, 4, 5)
    loss = losses(name, None, {"direction": direction}, {0, 1})
    states = given[4 : 4 + LAYERS[name][1]]
    tape = Autodiff(Cpu())
    first = burn.from_numpy(states[0], tape).require_grad()
    found = loss(*given[:4], first, *given[5:]).backward()[first]
    assert_close(found.numpy(), normal(*states[0].shape, seed=41))


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("place", range(5))
@pytest.mark.parametrize("name", LAYERS)
def test_what_is_not_finite(
    name: str, place: int, value: float, monkeypatch: Any
) -> None:
    """Where a gradient is a number step by step it is that number at once."""
    given = operands(name, "forward", 9, 3, 4, 5)
    given[place].flat[1] = value
    loss = losses(name, None, {}, {0, 1})
    expected = through_the_body(name, loss, given, monkeypatch)
    for actual in (gradients(loss, given), compiled_gradients(loss, given)[0]):
        for one, other in zip(actual, expected, strict=True):
            if one is not None:
                finite = np.isfinite(other)
                assert_close(one[finite], other[finite])
                assert not np.isfinite(one[~finite]).any()


def test_half_types_are_of_float32_inside() -> None:
    given = [x.astype(np.float16) for x in operands("gru", "forward", 9, 3, 4, 5)]
    loss = losses("gru", None, {}, {1})
    for one, other in zip(
        gradients(loss, given),
        gradients(loss, [x.astype(np.float32) for x in given]),
        strict=True,
    ):
        assert one.dtype == np.float16
        np.testing.assert_allclose(one, other, rtol=2e-2, atol=2e-2)
