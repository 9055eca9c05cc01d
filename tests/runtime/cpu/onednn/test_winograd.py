"""Convolutions that plans do with fewer products are NumPy's but for rounding."""

from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import burn
from burn import nn, ops
from burn.backend.cpu.onednn.binding import engine
from burn.backend.cpu.onednn.kernels.convolution import convolution, winograd
from burn.backend.cpu.onednn.kernels.convolution.winograd_sums import FOUR, TWO, Form
from burn.ops.window import windows
from tests.runtime.onednn import (
    assert_close,
    assert_trained_alike,
    laid_out,
    needs_onednn,
    normal,
    planned,
)
from tests.sampling import example_count

pytestmark = needs_onednn
orders = st.permutations(range(4))
forms = pytest.mark.parametrize("form", [TWO, FOUR], ids=["two", "four"])


def by_numpy(function: Any, *arrays: Any) -> Any:
    """The result without oneDNN."""
    with engine.numpy_only():
        return function(*map(burn.from_numpy, arrays)).numpy()


def done_so(monkeypatch: pytest.MonkeyPatch) -> list[Form]:
    """The forms of the convolutions that are done so from here on."""
    results: list[Form] = []

    def noted(*args: Any) -> Any:
        result = winograd.winograd(*args)
        if result is not None:
            results.append(result._source.form)
        return result

    monkeypatch.setattr(convolution, "winograd", noted)
    return results


@st.composite
def cases(draw: st.DrawFn) -> tuple[Any, ...]:
    """x, weight, bias, residual, the windows and what is done to the result."""
    few = st.integers(1, 3)
    size = (draw(st.integers(1, 19)), draw(st.integers(7, 11)))
    channels = draw(st.sampled_from([1, 3, 16, 20]))
    outputs = draw(st.sampled_from([1, 5, 16, 24]))
    columns, stride, dilation = (draw(st.integers(1, n)) for n in (4, 2, 2))
    padding = ((1, 1), (draw(st.integers(0, 2)), draw(st.integers(0, 2))))
    x = laid_out(normal(draw(few), channels, *size), draw(orders))
    weight = normal(outputs, channels, 3, columns, seed=1)
    how = {"stride": (1, stride), "dilation": (1, dilation), "padding": padding}
    wins = windows(size, (3, columns), (1, stride), padding, (1, dilation))
    bias = normal(outputs, seed=2) if draw(st.booleans()) else None
    residual = None
    if draw(st.booleans()):
        residual = laid_out(
            normal(x.shape[0], outputs, *wins.count, seed=3), draw(orders)
        )
    after = draw(st.sampled_from([None, ops.relu, ops.silu]))
    return x, laid_out(weight, draw(orders)), bias, residual, how, after


@forms
@settings(max_examples=example_count(40))
@given(case=cases(), needed=st.booleans())
def test_convolution(form: Form, case: Any, needed: bool) -> None:
    x, weight, bias, residual, how, after = case

    def run(x: Any, *others: Any) -> Any:
        result = ops.conv(x, burn.from_numpy(weight), bias, **how)
        for other in others:
            # Of the plan's own memory, which is written over unless it is needed.
            kept = other * 2.0
            result = result + kept
            result = result if after is None else after(result)
            return ops.sum(kept) + result if needed else result
        return result if after is None else after(result)

    given = [x] if residual is None else [x, residual]
    with done_by(form):
        actual = planned(run, *given)
    assert_close(actual, by_numpy(run, *given))


@pytest.mark.parametrize(
    ("shape", "outputs", "form"),
    [
        ((1, 64, 40, 64), 64, FOUR),
        ((1, 96, 14, 15), 512, TWO),
        ((9, 80, 7, 9), 260, FOUR),
    ],
    ids=["large", "few rows", "batch"],
)
def test_most_are_done_so(
    monkeypatch: pytest.MonkeyPatch, shape: Any, outputs: int, form: Form
) -> None:
    result = done_so(monkeypatch)
    x, weight = normal(*shape), normal(outputs, shape[1], 3, 3, seed=1)

    def run(x: Any) -> Any:
        return ops.relu(ops.conv(x, burn.from_numpy(weight), padding=1))

    expected = run(burn.from_numpy(x)).numpy()
    assert result == []  # an eager call has numbers that are not finite as well
    assert_close(planned(run, x), expected)
    assert result == [form]


@pytest.mark.parametrize("threads", [1, 2])
def test_one_thread_does_so_with_less_work(
    monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    session = engine.current()
    assert session is not None
    session.primitives.clear()
    monkeypatch.setattr(type(session.api), "threads", threads)
    result = done_so(monkeypatch)
    x, weight = normal(1, 64, 20, 24), normal(64, 64, 3, 3, seed=1)

    def run(x: Any) -> Any:
        return ops.conv(x, burn.from_numpy(weight), padding=1)

    assert_close(planned(run, x), by_numpy(run, x))
    assert result == ([FOUR] if threads == 1 else [])


@pytest.mark.parametrize(
    ("shape", "kernel", "how"),
    [
        ((1, 64, 20, 64), 3, {}),
        ((1, 20, 200, 128), 3, {}),
        ((1, 256, 7, 8), 3, {}),
        ((1, 128, 5, 64), 3, {}),
        ((1, 64, 40, 64), (3, 1), {}),
        ((1, 64, 60, 60), 3, {"stride": 2}),
        ((1, 64, 60, 60), 3, {"dilation": 2}),
        ((1, 64, 60, 60), 3, {"padding": 0}),
        ((1, 64, 60, 60), 3, {"padding": 2}),
        ((1, 128, 60, 60), 3, {"groups": 2}),
        ((1, 64, 30, 30), 5, {}),
    ],
    ids=[
        *("little", "channels", "small", "rows", "columns", "stride", "dilation"),
        *("no padding", "padding", "groups", "kernel"),
    ],
)
def test_others_stay(
    monkeypatch: pytest.MonkeyPatch, shape: Any, kernel: Any, how: Any
) -> None:
    result = done_so(monkeypatch)
    monkeypatch.setattr(winograd, "_WORK_ALONE", winograd._WORK)
    taps = kernel if isinstance(kernel, tuple) else (kernel, kernel)
    inputs = shape[1] // how.get("groups", 1)
    weight = normal(shape[1], inputs, *taps, seed=1)

    def run(x: Any) -> Any:
        static = {"padding": tuple(tap // 2 for tap in taps), **how}
        return ops.conv(x, burn.from_numpy(weight), **static)

    x = normal(*shape)
    assert_close(planned(run, x), run(burn.from_numpy(x)).numpy())
    assert result == []


def done_by(form: Form) -> Any:
    """Let plans do all convolutions for which there is such a way by this form."""
    # Primitives of the other form are kept by what they compute.
    session = engine.current()
    assert session is not None
    session.primitives.clear()

    def chosen(slots: Any, wins: Any, threads: int) -> Form | None:
        first = (wins.kernel[0], wins.stride[0], wins.dilation[0], wins.pads[0])
        return form if slots.planned and first == (3, 1, 1, (1, 1)) else None

    return patch.object(winograd, "_form", chosen)


@forms
@settings(max_examples=example_count(30))
@given(case=cases(), transposed=st.booleans(), moving=st.booleans())
def test_weights_that_are_computed(
    form: Form, case: Any, transposed: bool, moving: bool
) -> None:
    x, weight, _, _, how, _ = case
    how = {"padding": how["padding"]}
    if transposed:
        weight = weight.swapaxes(0, 1)
        how["padding"] = ((1, 1), (0, 0))
    bias = normal(weight.shape[int(transposed)], seed=2)
    op = ops.conv_transpose if transposed else ops.conv

    def run(x: Any, weight: Any) -> Any:
        return op(x, weight * 2.0, bias, **how)

    with done_by(form):
        if moving:
            actual = planned(run, x, weight)
        else:
            given = burn.from_numpy(weight)
            actual = planned(lambda x: run(x, given), x)
    assert_close(actual, by_numpy(run, x, weight))


@forms
def test_a_bias_with_gaps(form: Form) -> None:
    x, weight = normal(1, 16, 9, 8), burn.from_numpy(normal(8, 16, 3, 3, seed=1))

    def run(x: Any, bias: Any) -> Any:
        return ops.conv(x, weight, bias[::2], padding=1)

    given = (x, normal(16, seed=2))
    with done_by(form):
        actual = planned(run, *given)
    assert_close(actual, by_numpy(run, *given))


@forms
def test_plans_own_what_they_read(form: Form) -> None:
    x, weight = normal(2, 16, 9, 8), normal(8, 16, 3, 3, seed=1)

    def run(x: Any, weight: Any) -> Any:
        return ops.conv(x, weight * 2.0, padding=1)

    given = [burn.from_numpy(array) for array in (x, weight)]
    plan = burn.compile(run)
    with done_by(form):
        expected = [plan(*given).numpy() for _ in range(3)][-1]
    session = engine.current()
    assert session is not None
    session.primitives.clear()
    # Whatever is free now is written over.
    others = [np.full(count, np.nan, np.float32) for count in range(1, 200)] * 2
    np.testing.assert_array_equal(plan(*given).numpy(), expected)
    assert others


def test_images_of_other_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    result = done_so(monkeypatch)
    weight = burn.from_numpy(normal(512, 96, 3, 3, seed=1))
    plan = burn.compile(lambda x: ops.conv(x, weight, padding=1))
    for size in ((14, 15), (28, 20)) * 2:
        x = normal(1, 96, *size)
        expected = by_numpy(lambda x: ops.conv(x, weight, padding=1), x)
        assert_close(plan(burn.from_numpy(x)).numpy(), expected)
    assert result == [TWO, FOUR]


@forms
def test_it_is_no_less_exact_than_it_says(form: Form) -> None:
    x = normal(1, 256, 20, 20)
    # Of images and weights that are not centered, sums of rows are the largest.
    x[:, ::2] += 3
    weight = normal(32, 256, 3, 3, seed=1) + 0.3

    def run(x: Any, weight: Any) -> Any:
        return ops.conv(x, weight, padding=1)

    expected = by_numpy(run, x.astype(float), weight.astype(float))
    weights = burn.from_numpy(weight)
    with done_by(form):
        actual = planned(lambda x: run(x, weights), x)
    assert np.abs(actual - expected).max() < 3e-6 * np.abs(expected).max()


@forms
def test_forms(form: Form) -> None:
    rng = np.random.default_rng(0)
    image, weights = rng.standard_normal(form.rows + 2), rng.standard_normal(3)
    actual = form.result @ ((form.image @ image) * (form.weights @ weights))
    expected = np.convolve(image, weights[::-1], "valid")
    np.testing.assert_allclose(actual, expected, rtol=1e-12)


class Layer(nn.Module):
    """A convolution that is trained."""

    def __init__(self) -> None:
        self.conv = nn.Conv2d(64, 64, 3, padding=1)

    def __call__(self, x: Any) -> Any:
        return ops.relu(self.conv(x))


def test_weights_that_are_set(monkeypatch: pytest.MonkeyPatch) -> None:
    result, net, x = done_so(monkeypatch), Layer(), normal(1, 64, 40, 64)
    plan = burn.compile(net)
    for seed in range(3):
        for _, box in net.parameters():
            box.set(burn.from_numpy(normal(*box.shape, seed=seed)))
        for _ in range(2):
            actual = plan(burn.from_numpy(x)).numpy()
        assert_close(actual, by_numpy(net, x))
    assert result == [FOUR]


def test_what_is_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    result = done_so(monkeypatch)

    class Twice(Layer):
        def __call__(self, x: Any) -> Any:
            # The gradient of the inner one is that of its result as well.
            return super().__call__(super().__call__(x))

    assert_trained_alike(Twice, 2, 64, 40, 64, scale=1 / 8)
    assert result == [FOUR]  # the gradient by what goes in, of the outer one


@pytest.mark.parametrize("updated", [False, True])
def test_what_has_gradients_decides_as_eager_calls_do(
    updated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or a ReLU lets other elements pass, and gradients are others altogether."""
    output, net = done_so(monkeypatch), Layer().to(burn.Autodiff(burn.Cpu()))
    outer = Layer().to(burn.Autodiff(burn.Cpu()))
    boxes = [box for layer in (net, outer) for _, box in layer.parameters()]

    def step(x: Any) -> Any:
        results = [net(x)]
        results.append(outer(results[0]))
        grads = ops.mean(results[1] ** 2.0).backward()
        matches = [grads[box].detach() for box in boxes]
        for box, grad in zip(boxes, matches, strict=True):
            if updated:
                box.set(box.value.detach() - grad * 0.0)
        return [result.detach() for result in results], matches

    plan, x = burn.compile(step), burn.from_numpy(normal(1, 64, 80, 60 + 4 * updated))
    for _ in range(3):
        results, grads = plan(x)
    expected, by_eager = step(x)
    for a, b in zip(results, expected, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())
    for a, b in zip(grads, by_eager, strict=True):
        assert_close(a.numpy(), b.numpy())
    assert output == [FOUR]
