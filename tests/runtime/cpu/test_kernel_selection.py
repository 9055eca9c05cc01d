"""Plans generate the kernels that pay for their compilation, unless told otherwise."""

import sys
from typing import Any

import numpy as np
import pytest

import burn
from burn import ops
from burn.backend.cpu.jit import kernel_replacement, policy, selection
from burn.backend.cpu.jit.entries import GENERATED
from burn.backend.cpu.jit.selection import Candidate, profitable
from burn.backend.cpu.jit.source import Kernel
from burn.backend.cpu.onednn.binding import engine
from tests.runtime.onednn import assert_close, normal
from tests.runtime.programs import kernels, program_of


def chain(x: Any) -> Any:
    return ops.sqrt(ops.abs(x * 2.0 + 1.0) + 0.5) / (x * x + 1.0) - x


def run(function: Any, array: Any, **options: Any) -> Any:
    """Return a compiled function that was called three times, compared with eager."""
    compiled: Any = burn.compile(function, **options)
    for factor in (1.0, -0.5, 3.0):
        x = burn.from_numpy(array * np.float32(factor))
        assert_close(compiled(x).numpy(), function(x).numpy())
    return compiled


@pytest.mark.parametrize("shape", [(3, 8), (2, 4, 4), (4, 4, 4), (1, 5), (3, 1, 2, 7)])
@pytest.mark.parametrize("is_engine_used", [False, True])
def test_a_chain_is_one_kernel(shape: tuple[int, ...], is_engine_used: bool) -> None:
    pytest.importorskip("llvmlite")
    with engine.whatever_size() if is_engine_used else engine.numpy_only():
        compiled = run(chain, normal(*shape))
        if not is_engine_used:
            assert kernels(compiled) == [GENERATED]
        assert GENERATED not in kernels(run(chain, normal(*shape), generated=False))


@pytest.mark.parametrize("generated", [None, True])
def test_kernels_are_loaded_when_calls_are_first_repeated(
    generated: bool | None,
) -> None:
    pytest.importorskip("llvmlite")
    compiled = burn.compile(chain, generated=generated)
    joined = []
    with engine.numpy_only():
        for seed in range(4):
            x = burn.from_numpy(normal(2, 3, 4, seed=seed))
            assert_close(compiled(x).numpy(), chain(x).numpy())
            program = program_of(compiled)
            joined.append(program._node is not None and GENERATED in kernels(compiled))
    # The second call binds the plan; asked for, kernels are compiled there.
    assert joined == [False, generated is True, True, True]


def test_no_kernel_is_written_that_cannot_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("llvmlite")

    def refuse(*_: Any) -> Kernel:
        raise AssertionError("a kernel was written")

    monkeypatch.setattr(kernel_replacement, "group_kernel", refuse)
    with engine.numpy_only():
        assert GENERATED not in kernels(run(lambda x: x * 2.0 + 1.0, normal(3, 8)))
        with pytest.raises(AssertionError, match="was written"):
            run(chain, normal(3, 8))


def test_two_calls_are_not_worth_a_kernel() -> None:
    pytest.importorskip("llvmlite")
    with engine.numpy_only():
        assert kernels(run(lambda x: x * 2.0 + 1.0, normal(3, 8))) == ["", ""]
        forced = run(lambda x: x * 2.0 + 1.0, normal(3, 8), generated=True)
        assert kernels(forced) == [GENERATED]
        large = run(lambda x: x * 2.0 + 1.0, normal(64, 1024))
        assert kernels(large) == [GENERATED]


@pytest.mark.parametrize("array", [np.zeros((0, 3), np.float32), normal(2, 3) * np.nan])
def test_nothing_and_nan(array: Any) -> None:
    compiled: Any = burn.compile(chain)
    for _ in range(3):
        x = burn.from_numpy(array)
        np.testing.assert_array_equal(compiled(x).numpy(), chain(x).numpy())


def test_gradients_are_computed_without_kernels() -> None:
    def slopes(x: Any) -> Any:
        x = x.to(burn.Autodiff(burn.Cpu())).require_grad()
        return ops.sum(chain(x)).backward()[x]

    with engine.numpy_only():
        assert GENERATED not in kernels(run(slopes, normal(4, 8)))


@pytest.mark.parametrize("installed", ["0.44.1", None])
def test_without_a_compiler_there_are_none(
    monkeypatch: Any, installed: str | None
) -> None:
    if installed is None:
        monkeypatch.setitem(sys.modules, "llvmlite", None)
    else:
        monkeypatch.setattr("llvmlite.__version__", installed)
    policy.has_compiler.cache_clear()
    try:
        with engine.numpy_only():
            assert GENERATED not in kernels(run(chain, normal(3, 8)))
    finally:
        policy.has_compiler.cache_clear()


def test_savings_of_equal_kernels_add_up() -> None:
    def candidates(count: int, text: str, saved: float) -> list[Candidate]:
        return [
            Candidate(n, n + 1, Kernel(text, (), (), 1, 1), saved) for n in range(count)
        ]

    few = selection.LEAST_SAVED / 3
    once, often = candidates(1, "once", few), candidates(4, "often", few)
    assert profitable(once + often) == often
    most = selection.MOST_KERNELS
    different = [
        candidates(1, str(n), selection.LEAST_SAVED + n)[0] for n in range(most + 2)
    ]
    assert profitable(different) == different[2:]
