"""What plans set is written over in their own memory, and nobody else notices."""

import copy
import threading
from typing import Any

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu, ops
from burn.backend.cpu.onednn.binding import engine
from tests.runtime.onednn import normal


def tensor(*shape: int, seed: int = 0) -> burn.Tensor:
    return burn.from_numpy(normal(*shape, seed=seed))


def descent(box: Any, rate: float = 0.5) -> Any:
    def step(x: Any) -> Any:
        box.set(box.value - x * rate)
        return ops.sum(box.value)

    return burn.compile(step)


@pytest.mark.parametrize("numpy", [False, True])
def test_an_update_is_written_over(numpy: bool) -> None:
    box = burn.Buffer(tensor(40, 30, seed=1))
    step, expected = descent(box), tensor(40, 30, seed=1).numpy()
    with engine.numpy_only() if numpy else engine.whatever_size():
        for seed in range(5):
            step(tensor(40, 30, seed=seed))
            expected = expected - tensor(40, 30, seed=seed).numpy() * np.float32(0.5)
        np.testing.assert_allclose(box.numpy(), expected, rtol=1e-6)
    assert box.version == 5


def test_tensors_and_copies_that_were_taken_stay() -> None:
    box = burn.Buffer(tensor(40, 30, seed=1))
    step, taken = descent(box), []
    for seed in range(6):
        step(tensor(40, 30, seed=seed))
        if seed % 2:
            other = copy.copy(box)
            taken.append((box.value, other, box.numpy().copy()))
    for value, other, expected in taken:
        np.testing.assert_array_equal(value.numpy(), expected)
        np.testing.assert_array_equal(other.numpy(), expected)


def test_what_a_box_held_before_is_a_result() -> None:
    box = burn.Buffer(tensor(1500, seed=1))

    def step(x: Any) -> Any:
        before = box.value
        box.set(before - x * 0.5)
        return before, before[1:], box.value

    compiled, expected = burn.compile(step), tensor(1500, seed=1).numpy()
    for seed in range(5):
        before, part, after = compiled(tensor(1500, seed=seed))
        np.testing.assert_array_equal(before.numpy(), expected)
        np.testing.assert_array_equal(part.numpy(), expected[1:])
        expected = expected - tensor(1500, seed=seed).numpy() * np.float32(0.5)
        np.testing.assert_array_equal(after.numpy(), expected)


def test_updates_read_what_others_held_before() -> None:
    a, b, c = (burn.Buffer(tensor(30, 40, seed=seed)) for seed in (1, 2, 3))

    def step(x: Any) -> Any:
        first, second = a.value, b.value
        a.set(second * 0.5 + x)  # takes the memory of one that others still read
        b.set(first - second * 0.25)
        c.set(first)
        return ops.sum(x)

    compiled, (va, vb, vc) = burn.compile(step), (box.numpy() for box in (a, b, c))
    for seed in range(5):
        x = tensor(30, 40, seed=seed)
        compiled(x)
        half, quarter = np.float32(0.5), np.float32(0.25)
        va, vb, vc = vb * half + x.numpy(), va - vb * quarter, va
        for box, value in ((a, va), (b, vb), (c, vc)):
            np.testing.assert_array_equal(box.numpy(), value)


def test_momentum_reads_the_velocity_of_now() -> None:
    x, velocity = burn.Buffer(tensor(1500, seed=1)), burn.Buffer(tensor(1500, seed=2))

    def step(grad: Any) -> Any:
        velocity.set(velocity.value * 0.5 + grad)
        x.set(x.value - velocity.value * 0.25)
        return ops.sum(grad)

    compiled, at, speed = burn.compile(step), x.numpy(), velocity.numpy()
    for seed in range(5):
        compiled(tensor(1500, seed=seed))
        speed = speed * np.float32(0.5) + tensor(1500, seed=seed).numpy()
        at = at - speed * np.float32(0.25)
        np.testing.assert_array_equal(x.numpy(), at)
        np.testing.assert_array_equal(velocity.numpy(), speed)


def test_a_run_that_fails_has_changed_nothing() -> None:
    box = burn.Parameter(tensor(600, 3, seed=1))
    box.to(Autodiff(Cpu()))

    def step(index: Any) -> Any:
        loss = ops.sum(ops.take(box, index, 0) ** 2.0)
        box.set(box.value.detach() - loss.backward()[box] * 0.1)
        return loss.detach()

    compiled = burn.compile(step)
    for _ in range(3):
        compiled(burn.tensor([1, 4]))
    before, version = box.numpy().copy(), box.version
    with pytest.raises(IndexError):
        compiled(burn.tensor([1, 900]))
    np.testing.assert_array_equal(box.numpy(), before)
    assert box.version == version


def test_numbers_that_grow_without_bound_are_infinite_as_they_should() -> None:
    box, plain = burn.Buffer(tensor(1500, seed=1)), tensor(1500, seed=1)
    step = descent(box, 1e30)
    for _ in range(12):
        step(tensor(1500, seed=2) * 1e30 * 1e7)
        plain = plain - tensor(1500, seed=2) * 1e30 * 1e7 * 1e30
        np.testing.assert_array_equal(box.numpy(), plain.numpy())
    relu = burn.compile(lambda x: ops.relu(x * box.value))
    for _ in range(2):
        assert np.isnan(relu(burn.tensor([0.0] * 1500)).numpy()).all()


def test_two_plans_set_one_box_in_turn() -> None:
    box, expected = burn.Buffer(tensor(1500, seed=1)), tensor(1500, seed=1).numpy()
    one, other = descent(box, 0.5), descent(box, 0.25)
    for seed in range(8):
        x = tensor(1500, seed=seed)
        (one if seed % 3 else other)(x)
        rate = np.float32(0.5 if seed % 3 else 0.25)
        expected = expected - x.numpy() * rate
    np.testing.assert_array_equal(box.numpy(), expected)


def test_others_read_a_box_while_plans_set_it() -> None:
    box, stop = burn.Buffer(burn.tensor([0.0] * 50_000)), threading.Event()
    torn: list[Any] = []

    def read() -> None:
        while not stop.is_set():
            array = box.value.numpy()
            if array.min() != array.max():
                torn.append(array)

    reader = threading.Thread(target=read)
    step, ones = descent(box, -1.0), burn.tensor([1.0] * 50_000)
    reader.start()
    for _ in range(200):
        step(ones)
    stop.set()
    reader.join()
    assert not torn
    assert box.numpy().min() == box.numpy().max() == 200
