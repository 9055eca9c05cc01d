"""Programs of fused plans on a device without kernels of its own."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import pytest

import burn
from burn.backend.cuda.graphs import graph
from burn.backend.cuda.graphs.program import Program, difference
from burn.ops.fused import linear_then
from burn.plan.executable import Executable, Plan
from burn.tensor import innermost
from tests.runtime.onednn import assert_close, normal
from tests.runtime.plan.device.test_fusions import Block, Encoder, filled
from tests.runtime.plan.test_seam import OtherDevice


class ProgramRun(Executable):
    """A program that computes its constants once, and checks its first run."""

    def __init__(self, plan: Plan, device: OtherDevice) -> None:
        self.program = Program(plan, device)
        self.constants = self.program.constants()
        self.runs = 0

    @property
    def notes(self) -> list[str]:
        return self.program.notes

    def run(self, inputs: list[Any]) -> Any:
        self.runs += 1
        if self.runs == 1:
            return self.program.run_checked(inputs, self.constants)[0]
        return self.program.run(inputs, self.constants)[0]


class ProgramDevice(OtherDevice):
    """A device that runs programs."""

    def bind(self, plan: Plan) -> Any:
        self.bound.append(ProgramRun(plan, self))  # type: ignore[arg-type]
        return self.bound[-1]


class WrongDevice(ProgramDevice):
    """A device whose fused layers are wrong."""


@linear_then.on(WrongDevice)
def _wrong(
    x: Any, weight: Any, bias: Any = None, residual: Any = None, **_: Any
) -> Any:
    return x @ weight.T


@pytest.mark.parametrize("batch", (1, 8))
@pytest.mark.parametrize("dtype", ("float32", "float16"))
@pytest.mark.parametrize("kind", (Block, Encoder))
def test_programs(kind: Any, dtype: str, batch: int) -> None:
    device = ProgramDevice()
    module = filled(kind(), dtype, device)
    plan = burn.compile(module)
    shape = (batch, 4, 5, 6) if kind is Block else (batch, 5, 8)
    for seed in range(4):
        x = burn.from_numpy(normal(*shape, seed=seed).astype(dtype), device)
        expected = module(x).numpy()
        atol = np.abs(expected).max() * (1e-5 if dtype == "float32" else 1e-2)
        np.testing.assert_allclose(plan(x).numpy(), expected, atol=atol, rtol=0)
    assert plan.notes == []


def test_a_fused_kernel_that_differs_is_noted_and_not_used() -> None:
    device = WrongDevice()
    module = filled(Encoder(), "float32", device)
    plan = burn.compile(module)
    for seed in range(3):
        x = burn.from_numpy(normal(2, 5, 8, seed=seed), device)
        assert_close(plan(x).numpy(), module(x).numpy(), 1e-5)
    assert len(plan.notes) == 3
    assert all(note.startswith("linear_then [2, 5, ") for note in plan.notes)


class RunInsteadOfGraph:
    """A program in place of its graph, which differs while ``wrong`` says so."""

    kernels = 0

    def __init__(
        self,
        program: Program,
        device: Any,
        inputs: list[Any],
        read: list[Any],
        shared: Any,
        separates: bool = False,
    ) -> None:
        self._run, self._constants = program.run, program.constants()
        device.captured.append(program.is_fused)
        if program.is_fused in device.wrong:
            raise graph.GraphError("the graph differs from its kernels by 4.8e-01")

    def changed(self) -> frozenset[Any]:
        return frozenset()

    def launch(self, inputs: list[Any]) -> Any:
        return self._run(inputs, self._constants)[0]


class GraphDevice(OtherDevice):
    """A device of graphs; those of fused plans, or not, or all of them are wrong."""

    def __init__(self, wrong: tuple[bool, ...]) -> None:
        super().__init__()
        self.wrong, self.captured = wrong, list[bool]()

    def current(self) -> AbstractContextManager[None]:
        return nullcontext()

    def bind(self, plan: Plan) -> Any:
        return graph.GraphReplay(plan, self)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wrong", "captured", "notes"),
    (
        ((), [True], []),
        ((True,), [True, True, False], ["no fused kernels"]),
        ((True, False), [True, True, False], ["no fused kernels", "no CUDA graph"]),
    ),
)
def test_a_fused_graph_that_differs_is_captured_without_fused_steps(
    monkeypatch: pytest.MonkeyPatch,
    wrong: tuple[bool, ...],
    captured: list[bool],
    notes: list[str],
) -> None:
    monkeypatch.setattr(graph, "CapturedGraph", RunInsteadOfGraph)
    device = GraphDevice(wrong)
    module = filled(Encoder(), "float32", device)
    plan = burn.compile(module)
    for seed in range(3):
        x = burn.from_numpy(normal(2, 5, 8, seed=seed), device)
        assert_close(plan(x).numpy(), module(x).numpy(), 1e-5)
    assert device.captured == captured
    reason = "the graph differs from its kernels by 4.8e-01"
    assert plan.notes == [f"{note}: {reason}" for note in notes]


def test_constants_are_computed_once() -> None:
    device = ProgramDevice()
    module = filled(Block(), "float32", device)
    plan = burn.compile(module)
    x = burn.from_numpy(normal(2, 4, 5, 6), device)
    plan(x)
    run: Any = device.bound[-1]
    before = dict(run.constants)
    weights = {id(innermost(box.held()).data) for _, box in module.boxes()}
    plan(x)
    assert run.constants == before
    folded = [value for value in before.values() if id(value) not in weights]
    assert len(folded) == 4  # two weights and two biases


def test_differences() -> None:
    x = normal(3, 4)
    assert difference(x, x) == 0
    assert difference(x, x.T) == np.inf
    y = x.copy()
    y[0, 0] += 1
    assert difference(y, x) == pytest.approx(1 / np.abs(x).max(), rel=1e-5)
    y[1, 1] = np.nan
    assert np.isfinite(difference(y, x))
