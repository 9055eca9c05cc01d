"""Inputs that plans read where the caller has them."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import burn
from burn import ops
from burn.backend.cpu.bind import inputs
from tests.runtime.onednn import assert_close, laid_out, needs_onednn, normal
from tests.sampling import example_count

pytestmark = needs_onednn
SHAPE = (2, 5, 24, 30)
WEIGHT = burn.Parameter(burn.from_numpy(normal(6, 5, 3, 3, seed=1)))
ROWS = burn.Parameter(burn.from_numpy(normal(30, 7, seed=2)))


def conv(x: Any) -> Any:
    return ops.conv(x, WEIGHT.value, padding=1)


def branching(x: Any) -> Any:
    y = conv(x)
    return y * 2.0 + x[:, :1] if bool(ops.sum(y) > 0.0) else ops.relu(x)


FUNCTIONS: dict[str, Any] = {
    "conv": conv,
    "linear": lambda x: x @ ROWS.value,
    "relu": ops.relu,
    "chain": lambda x: ops.relu(x * 2.0 - 1.0) + 3.0,
    "twice": lambda x: (conv(x), x @ ROWS.value),
    "product": lambda x: x @ ops.transpose(x, -1, -2),
    "numpy": lambda x: (conv(x), ops.sin(x)),
    "late": lambda x: ops.sin(ops.transpose(x, 1, 2))
    + ops.transpose(conv(x), 1, 2)[:, :, :5],
    "itself": lambda x: (x, conv(x)),
    "view": lambda x: (ops.transpose(x, 1, 3), ops.exp(x)),
    "overwritten": lambda x: ops.exp(ops.relu(x)) + ops.tanh(x),
    "branch": branching,
    "means": lambda x: ops.mean(x, axis=(2, 3)),
    "pool": lambda x: ops.max_pool(x, kernel_size=(3, 3)),
    "norm": lambda x: ops.softmax(x) + ops.rms_norm(x, ROWS.value[:, 0]),
}
#: Those whose input nothing but primitives reads.
IN_PLACE = ("conv", "linear", "chain", "twice", "product", "pool")


def leaves(value: Any) -> list[Any]:
    return [leaf.numpy() for leaf in (value if isinstance(value, tuple) else (value,))]


def misaligned(x: Any) -> Any:
    raw = np.zeros(x.nbytes + 1, np.uint8)
    result = raw[1:].view(x.dtype).reshape(x.shape)
    result[...] = x
    return result


LAYOUTS = {
    "same": lambda x: x,
    "reordered": lambda x: laid_out(x, (0, 2, 3, 1)),
    "gaps": lambda x: np.repeat(x, 2, 3)[..., ::2],
    "backwards": lambda x: x[::-1, :, ::-1],
    "misaligned": misaligned,
}
layouts = st.sampled_from(sorted(LAYOUTS))


@pytest.mark.parametrize("name", FUNCTIONS)
@settings(max_examples=example_count(15))
@given(chosen=st.lists(layouts, min_size=4, max_size=6))
def test_any_array_in_any_run(name: str, chosen: list[str]) -> None:
    function = FUNCTIONS[name]
    plan = burn.compile(function)
    for seed, layout in enumerate(chosen):
        x = LAYOUTS[layout](normal(*SHAPE, seed=seed) - 0.2 * (seed % 2))
        before = x.copy()
        for _ in range(1 + seed % 2):
            result, expected = plan(burn.from_numpy(x)), function(burn.from_numpy(x))
            for a, b in zip(leaves(result), leaves(expected), strict=True):
                assert_close(a, b)
        np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_nothing_is_copied(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    copied: list[Any] = []

    def copyto(target: Any, source: Any) -> None:
        copied.append(source)
        np.copyto(target, source)

    plan = burn.compile(FUNCTIONS[name])
    for _ in range(3):
        plan(burn.from_numpy(normal(*SHAPE)))
    monkeypatch.setattr(inputs, "np", SimpleNamespace(copyto=copyto))
    plan(burn.from_numpy(normal(*SHAPE)))
    assert (not copied) == (name in IN_PLACE)


def test_what_is_read_is_what_was_given_last() -> None:
    plan = burn.compile(conv)
    given = [normal(*SHAPE, seed=seed) for seed in range(4)]
    for x in [*given, *given[::-1]]:
        expected = conv(burn.from_numpy(x)).numpy()
        assert_close(plan(burn.from_numpy(x)).numpy(), expected)
        x += 1.0


def test_two_inputs_that_are_one_array() -> None:
    def function(x: Any, y: Any) -> Any:
        return conv(x) + conv(y)

    plan = burn.compile(function)
    first, second = (burn.from_numpy(normal(*SHAPE, seed=seed)) for seed in (1, 2))
    for pair in [(first, second), (first, first), (second, first), (second, second)]:
        for _ in range(2):
            assert_close(plan(*pair).numpy(), function(*pair).numpy())


def test_an_input_beside_a_parameter_that_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scale = burn.Parameter(burn.from_numpy(normal(6, 1, 1)))

    def function(x: Any) -> Any:
        return conv(x) * scale.value

    plan = burn.compile(function)
    for seed in range(8):
        scale.set(burn.from_numpy(normal(6, 1, 1, seed=seed)))
        x = burn.from_numpy(normal(*SHAPE, seed=seed))
        assert_close(plan(x).numpy(), function(x).numpy())
    monkeypatch.setattr(inputs, "np", SimpleNamespace())  # nothing that copies
    plan(burn.from_numpy(normal(*SHAPE)))
