"""Profiles of plans: their rows, engines and order, and that they change nothing."""

import json
from typing import Any

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu, Tensor, nn, ops
from burn.backend.cpu.onednn.binding import engine
from burn.plan.profile import Profile, Profiler
from tests.runtime.onednn import needs_onednn


class Net(nn.Module):
    """Two layers with something of NumPy's between them."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(8, 16)
        self.blocks = nn.Sequential(nn.Linear(16, 16), nn.Linear(16, 4))

    def __call__(self, x: Tensor) -> Tensor:
        y = ops.cumsum(self.first(x), axis=1)
        return self.blocks(y)


def batch(*shape: int) -> Tensor:
    return burn.tensor(np.random.default_rng(0).normal(size=shape).astype(np.float32))


def rows_of(profile: Profile, primitive: str) -> list[Any]:
    return [row for row in profile.rows if row.primitives == (primitive,)]


@needs_onednn
def test_rows_name_primitive_module_line_and_engine() -> None:
    profile = burn.compile(Net()).profile(batch(3, 8))
    layers = [row for row in profile.rows if row.primitives[0].startswith("linear")]
    assert [row.module for row in layers] == ["first", "blocks.0", "blocks.1"]
    assert [row.result for row in layers] == [f"float32[3, {n}]" for n in (16, 16, 4)]
    assert all("oneDNN" in row.engines for row in layers)
    assert all(row.line.startswith("test_profile.py:") for row in profile.rows)
    (between,) = rows_of(profile, "cumsum")
    assert between.engines == ("NumPy",) and "oneDNN" in between.reason
    assert profile.rows.index(between) == 1  # in the order of the plan


def test_without_onednn_every_step_is_numpy() -> None:
    with engine.numpy_only():
        profile = burn.compile(Net(), generated=False).profile(batch(3, 8))
    assert {name for row in profile.rows for name in row.engines} == {"NumPy"}
    assert all("oneDNN is not loaded" in row.reason for row in profile.rows)


def test_times_add_up_and_are_sorted() -> None:
    profile = burn.compile(Net()).profile(batch(3, 8))
    assert profile.runs >= 5 and profile.total_ms > 0
    assert all(row.ms > 0 for row in profile.rows)
    assert sum(row.ms for row in profile.rows) == pytest.approx(profile.steps_ms)
    assert sum(row.share for row in profile.rows) == pytest.approx(1)
    assert sum(profile.by_engine.values()) == pytest.approx(profile.steps_ms)
    times = [row.ms for row in profile.by_time]
    assert times == sorted(times, reverse=True)
    assert sorted(map(id, profile.by_time)) == sorted(map(id, profile.rows))


def test_rows_are_means_of_the_quickest_quarter_of_the_runs() -> None:
    """Medians of the rows add up to 6 microseconds, runs take 5, 6 or 11."""
    profiler = Profiler(lambda: None)
    steps: tuple[Any, ...] = (object(), object())
    for step in steps:
        profiler.measured(lambda: None, (step,), "NumPy", "add")
    rows = profiler._timings.values()
    for times in ((3_000, 3_000), (9_000, 2_000), (1_000, 4_000), (2_000, 9_000)):
        profiler.start_run()
        for row, time in zip(rows, times, strict=True):
            row.calls[0][profiler._runs] = time
    profile = profiler.profile([9_000, 6_000, 8_000])
    assert [row.ms for row in profile.rows] == [0.001, 0.004]
    assert profile.total_ms == 0.006 and profile.runs == 3


def test_text_and_json_have_the_same_rows() -> None:
    profile = burn.compile(Net()).profile(batch(3, 8))
    lines = str(profile).splitlines()
    assert len(lines) == len(profile.rows) + 2
    printed = [line.split()[0] for line in lines[1:-1]]
    assert printed == [f"{row.ms:.3f}" for row in profile.by_time]
    assert len(profile.to_text(1).splitlines()) == 3
    read = json.loads(json.dumps(profile.to_json()))
    assert [tuple(row["primitives"]) for row in read["rows"]] == [
        row.primitives for row in profile.rows
    ]


def test_generated_kernels_are_rows_of_their_steps() -> None:
    pytest.importorskip("llvmlite")

    def chain(x: Tensor) -> Tensor:
        return ops.sqrt(ops.abs(x) + 1.0) * 0.5 - 2.0

    compiled = burn.compile(chain, generated=True)
    profile = compiled.profile(batch(64, 65))
    joint = [row for row in profile.rows if len(row.primitives) > 1]
    assert joint and all("LLVM" in row.engines for row in joint)
    assert all(not row.reason for row in joint)
    plain = burn.compile(chain, generated=False).profile(batch(64, 65))
    assert not [row for row in plain.rows if "LLVM" in row.engines]


def test_results_are_those_without_a_profile() -> None:
    net, x = Net(), batch(3, 8)
    compiled = burn.compile(net)
    before = [compiled(x).numpy() for _ in range(2)][-1]
    compiled.profile(x)
    after = [compiled(x).numpy() for _ in range(2)]
    assert all(np.array_equal(before, each) for each in after)
    assert len(compiled.executables) == 1  # the measured plan is none of its own


def test_a_training_step_leaves_parameters_and_state() -> None:
    device = Autodiff(Cpu())
    net = Net().to(device)

    def step(x: Tensor) -> Tensor:
        loss = ops.mean(net(x) ** 2.0)
        grads = loss.backward()
        for _, box in net.parameters():
            box.set(box.value.detach() - grads[box] * 0.01)
        return loss.detach()

    def state() -> list[Any]:
        return [box.value.numpy().copy() for _, box in net.boxes()]

    compiled, x = burn.compile(step), batch(3, 8)
    compiled(x)
    before = state()
    profile = compiled.profile(x)
    assert all(map(np.array_equal, before, state()))
    assert any(row.primitives[0].startswith("linear") for row in profile.rows)
    loss = compiled(x).numpy()
    assert compiled(x).numpy() < loss  # it still trains


def test_branches_are_measured_where_they_are_taken() -> None:
    def branch(x: Tensor) -> Tensor:
        return ops.sqrt(x) if ops.sum(x).item() > 0 else ops.cumsum(x, axis=0)

    compiled = burn.compile(branch)
    x = burn.tensor(np.ones((3, 4), np.float32))
    names = {name for row in compiled.profile(x).rows for name in row.primitives}
    assert "sqrt" in names and "cumsum" not in names
    names = {name for row in compiled.profile(-x).rows for name in row.primitives}
    assert "cumsum" in names and "sqrt" not in names


def test_a_function_without_a_plan_is_refused_and_its_boxes_stay() -> None:
    box = burn.Buffer(burn.tensor(np.zeros((3,), np.float32)))

    def reads(x: Tensor) -> float:
        box.set(box.value + 1.0)
        return float(x.numpy().sum())

    with pytest.raises(ValueError, match="read on the host"):
        burn.compile(reads).profile(batch(100))
    assert not box.value.numpy().any()
