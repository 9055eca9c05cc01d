"""Plans of decode steps: what devices fuse, and slices that boxes are set to."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

import burn
from benchmarks.decode_networks import Gpt2, Llama, Sizes, with_cache
from burn import Buffer, nn
from burn.backend.cuda.graphs.program import Program
from burn.generation import Decoder
from burn.ops.caches import update_slice
from tests.runtime.onednn import assert_close, normal
from tests.runtime.plan.device.test_programs import ProgramDevice

CAPACITY, BEFORE = 16, 6


class PlanDevice(ProgramDevice):
    """A device that keeps the plans that were bound to it."""

    def __init__(self) -> None:
        super().__init__()
        self.plans: list[Any] = []

    def bind(self, plan: Any) -> Any:
        self.plans.append(plan)
        return super().bind(plan)


def sizes(kind: Any) -> Sizes:
    return Sizes(50, 2, 4, 4 if kind is Gpt2 else 2, 16, 48, 32)


@pytest.mark.parametrize("batch", (1, 8, 9))
@pytest.mark.parametrize("kind", (Gpt2, Llama))
@pytest.mark.sampled(3)
def test_steps_of_decoders_are_fused(kind: Any, batch: int) -> None:
    device = PlanDevice()
    model = with_cache(kind, sizes(kind))
    decoder = Decoder(model.to(device), batch=batch, capacity=CAPACITY)
    host = Decoder(with_cache(kind, sizes(kind)), batch=batch, capacity=CAPACITY)
    tokens = np.random.default_rng(0).integers(0, 50, (batch, BEFORE + 1))
    for end in (BEFORE, BEFORE + 1):
        given = tokens[:, 0 if end == BEFORE else BEFORE : end].copy()
        expected = host(burn.tensor(given)).numpy()
        decoder(burn.from_numpy(given, device))
    (plan,) = device.plans
    program = Program(plan, device)
    counts = Counter(step.primitive.name for step, _ in program._steps)
    assert counts["cached_attention"] == 2
    assert counts["concat"] == counts["matmul"] == 0
    if batch <= 8:  # more rows are for matrix units
        assert counts["row_linear"] == 2 * 4 + 1
        assert not {"layer_norm", "rms_norm", "linear", "silu"} & set(counts)
    caches = decoder._state.caches
    numbers = {id(box): number for number, box in enumerate(caches)}
    assert sorted(map(id, program.slices)) == sorted(numbers)
    # The step once more, from where the recording started.
    values = {read.place: read.held().data for read in program.reads.values()}
    length = next(r for r in program.reads.values() if r.box.dtype == np.int64)
    values[length.place] = np.array([BEFORE])
    inputs = [tokens[:, BEFORE:].copy()]
    result, written = program.run_checked(inputs, {**program.constants(), **values})
    assert program.notes == []
    scale = np.abs(expected).max()
    np.testing.assert_allclose(result.numpy(), expected, atol=1e-2 * scale, rtol=0)
    for box, value in zip(program.writes, written, strict=True):
        if box in program.slices:
            update, start = value
            assert start.numpy().tolist() == [BEFORE]
            theirs = host._state.caches[numbers[id(box)]].value.numpy()
            ours, theirs = update.numpy(), theirs[:, :, BEFORE : BEFORE + 1]
            np.testing.assert_allclose(ours, theirs, atol=2e-2, rtol=0)


@pytest.mark.parametrize("padding", (False, True))
def test_steps_of_layers_with_caches_are_fused(padding: bool) -> None:
    """Attention reads the caches of a written network in place, too."""
    device = PlanDevice()
    nn.init.seed(0)
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    model = nn.TransformerEncoder(layer, 2)
    x, hidden = normal(2, BEFORE + 1, 16), np.arange(BEFORE) < np.array([[0], [2]])
    mask = burn.tensor(hidden) if padding else None
    cache = model.new_cache(CAPACITY, 2, padding=padding)
    model(burn.tensor(x[:, :BEFORE]), None, mask, is_causal=True, cache=cache)
    started = [box.value for _, box in cache.boxes()]
    new = burn.tensor(x[:, BEFORE:].copy())
    expected = model(new, is_causal=True, cache=cache).numpy()
    for (_, box), value in zip(cache.boxes(), started, strict=True):
        box.set(value)
    model.to(device)
    cache.to(device)
    compiled = burn.compile(lambda x: model(x, is_causal=True, cache=cache))
    result = compiled(burn.from_numpy(new.numpy(), device))
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-5, atol=1e-5)
    (plan,) = device.plans
    program = Program(plan, device)
    counts = Counter(step.primitive.name for step, _ in program._steps)
    assert counts["cached_attention"] == 2 and counts["matmul"] == 0
    keys = [box for each in cache.layers for box in (each.key, each.value)]
    assert set(map(id, keys)) <= set(map(id, program.slices))
    # The step once more, from where the recording started.
    values = {read.place: read.held().data for read in program.reads.values()}
    for read in program.reads.values():
        if read.box.dtype == np.int64:
            values[read.place] = np.array([BEFORE])
    values = {**program.constants(), **values}
    result, _ = program.run_checked([new.numpy()], values)
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("options", ({}, *({"axis": a} for a in (0, 1, 2, -1))))
@pytest.mark.parametrize("start", (0, 2, 4))
def test_slices_of_concatenations(start: int, options: dict[str, int]) -> None:
    """Only the axis of keys is that of a cache; the default is another one."""

    def last(past: Any, new: Any) -> Any:
        return burn.ops.concat([past, new], *options.values())[:, :, start:] + 1

    device = PlanDevice()
    past, new = normal(2, 2, 2, 2), normal(2, 2, 2, 2, seed=1)
    expected = np.concatenate([past, new], options.get("axis", 0))[:, :, start:] + 1
    compiled = burn.compile(last)
    for _ in range(3):
        result = compiled(burn.tensor(past, device), burn.tensor(new, device))
        np.testing.assert_array_equal(result.numpy(), expected)
    assert compiled.notes == []


@pytest.mark.parametrize("axis", (0, 1, -1))
@pytest.mark.parametrize("start", (-3, 0, 2, 9))
def test_slices_are_written_where_they_fit(start: int, axis: int) -> None:
    x, shape = normal(4, 5, 6), [4, 5, 6]
    shape[axis] = 2
    update = normal(*shape, seed=1)
    given = (burn.tensor(x), burn.tensor(update), burn.tensor(np.array([start])))
    actual = update_slice(*given, axis=axis).numpy()
    first = min(max(start, 0), x.shape[axis] - 2)
    expected = np.moveaxis(x, axis, 0).copy()
    expected[first : first + 2] = np.moveaxis(update, axis, 0)
    np.testing.assert_array_equal(actual, np.moveaxis(expected, 0, axis))


def test_boxes_are_set_to_slices_in_place() -> None:
    box = Buffer(burn.tensor(np.zeros((2, 8, 3), np.float32)))

    def write(update: Any, start: Any) -> Any:
        result = box.value.sum()
        box.set(update_slice(box.value, update, start))
        return result

    compiled = burn.compile(write)
    expected = np.zeros((2, 8, 3), np.float32)
    for call in range(6):
        update = normal(2, 1, 3, seed=call)
        if call == 3:
            update[0, 0, 1] = np.nan
        total = compiled(burn.tensor(update), burn.tensor(np.array([call])))
        assert_close(total.numpy(), expected.sum(), 1e-5)
        expected[:, call] = update[:, 0]
        np.testing.assert_array_equal(box.value.numpy(), expected)
    assert compiled.notes == []
