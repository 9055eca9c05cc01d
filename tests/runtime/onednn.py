"""Comparing oneDNN with NumPy, which computes the same calls."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import burn
from burn import ops
from burn.backend.cpu.onednn.binding import engine

#: Without the library there is nothing to compare.
needs_onednn = pytest.mark.skipif(
    engine.engine().name != "onednn",
    reason=f"no oneDNN: {engine.engine().notes}; pip install onednn-cpu-gomp",
)


def both(function: Callable[..., Any], *arrays: Any, **static: Any) -> tuple[Any, Any]:
    """The result by oneDNN, and by NumPy.

    Raises:
        AssertionError: oneDNN was not used although the processor has AVX-512, for
            which it has code for everything, or an operand was changed.
    """
    given = [None if x is None else burn.from_numpy(x) for x in arrays]
    before = [None if x is None else x.copy() for x in arrays]
    result, used = _with_onednn(function, given, static)
    assert used or not has_avx512(), "oneDNN was not used"
    assert not any(name.startswith("ref") for name in used), used
    with engine.numpy_only():
        expected = function(*given, **static)
    for array, copy in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, copy)
    return result.numpy(), expected.numpy()


def by_numpy(function: Callable[..., Any], *arrays: Any, **static: Any) -> Any:
    """The result of a call that is left to NumPy, although oneDNN is there.

    Raises:
        AssertionError: oneDNN was used.
    """
    given = [None if x is None else burn.from_numpy(x) for x in arrays]
    result, used = _with_onednn(function, given, static)
    assert not used, used
    return result.numpy()


def _with_onednn(
    function: Callable[..., Any], given: list[Any], static: dict[str, Any]
) -> tuple[Any, list[str]]:
    """The result of the second call, and the implementations that oneDNN used."""
    session = engine.current()
    assert session is not None
    session.primitives.clear()
    with engine.whatever_size():
        function(*given, **static)
        result = function(*given, **static)
    return result, session.primitives.implementations()


def has_avx512() -> bool:
    """Return whether oneDNN uses AVX-512; for other processors it has less code."""
    session = engine.current()
    return session is not None and bool(session.api.instructions() & 0x20)


def assert_close(actual: Any, expected: Any, rtol: float = 1e-5) -> None:
    """Within ``rtol`` of the largest element, and of one shape and dtype."""
    assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype)
    scale = float(np.abs(expected).max(initial=0.0))
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=rtol * scale)


def compare(function: Callable[..., Any], *arrays: Any, **static: Any) -> None:
    """Assert that oneDNN computes what NumPy does."""
    assert_close(*both(function, *arrays, **static))


def normal(*shape: int, seed: int = 0) -> Any:
    """Normally distributed float32 of ``shape``."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def steps_of(array: Any) -> list[tuple[int, int]]:
    """Return the strides of the axes that have several elements, by axis.

    Versions of NumPy choose different strides for axes of one element.
    """
    pairs = enumerate(zip(array.shape, array.strides, strict=True))
    return [(axis, stride) for axis, (extent, stride) in pairs if extent > 1]


def laid_out(array: Any, order: Any) -> Any:
    """A copy of ``array`` whose axes are in memory by ``order``, slowest first."""
    back = np.argsort(order)
    return np.ascontiguousarray(array.transpose(order)).transpose(back)


def planned(function: Any, *arrays: Any) -> Any:
    """The result of a plan, when it runs again."""
    plan = burn.compile(function)
    tensors = [burn.from_numpy(x) for x in arrays]
    for _ in range(3):
        result = plan(*tensors)
    return result.numpy()


def assert_trained_alike(make: Callable[[], Any], *shape: int, scale: float) -> None:
    """Assert that a network is trained by a plan as by eager calls.

    It gets arrays of ``shape``, and the loss is the mean square of what it makes. Its
    parameters are normally distributed with this ``scale`` at first.
    """
    nets = [make().to(burn.Autodiff(burn.Cpu())) for _ in range(2)]
    for net in nets:
        for seed, (_, box) in enumerate(net.parameters()):
            box.set(burn.from_numpy(normal(*box.shape, seed=seed) * scale))

    def stepping(net: Any) -> Any:
        def step(x: Any) -> Any:
            loss = ops.mean(net(x) ** 2.0)
            grads = loss.backward()
            for _, box in net.parameters():
                box.set(box.value.detach() - grads[box] * 0.1)
            return loss.detach()

        return step

    plain, compiled = stepping(nets[0]), burn.compile(stepping(nets[1]))
    for seed in range(5):
        x = burn.from_numpy(normal(*shape, seed=seed))
        assert_close(compiled(x).numpy(), plain(x).numpy(), 1e-4)
    for (_, one), (_, other) in zip(*(net.parameters() for net in nets), strict=True):
        assert_close(other.value.numpy(), one.value.numpy(), 1e-4)


def compare_calls(function: Callable[..., Any], *shape: int, **options: Any) -> Any:
    """Compare four compiled calls with eager ones; return the compiled function.

    The results are compared after the last call, which must not have changed them.
    """
    compiled = burn.compile(function, **options)
    results = []
    for seed in range(4):
        x = burn.from_numpy(normal(*shape, seed=seed) * (seed + 1))
        results.append((compiled(x), function(x)))
    for actual, expected in results:
        assert_close(actual.numpy(), expected.numpy())
    assert not compiled.notes
    return compiled
