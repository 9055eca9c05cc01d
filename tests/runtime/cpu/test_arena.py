"""The memory of plans: what lives at one time overlaps nowhere, and is used again."""

from typing import Any

import numpy as np
from hypothesis import settings, strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    rule,
)
from numpy.lib.array_utils import byte_bounds

from burn.backend.cpu.bind.arena import Arena, Buffer
from tests.sampling import example_count

ALIGNMENT = 64
SIZE = 4096
shapes = st.lists(st.sampled_from([0, 1, 2, 3, 7, 16, 33]), max_size=3).map(tuple)
dtypes = st.sampled_from(["float32", "float64", "int8", "bool", "float16"])


def stretch(array: Any) -> int:
    """The bytes that an array takes of an arena."""
    size = int(array.nbytes)
    return max(-(-size // ALIGNMENT) * ALIGNMENT, ALIGNMENT)


def start(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


class Memory(RuleBasedStateMachine):
    """An arena beside a list of what lives, and branches of it beside each other."""

    def __init__(self) -> None:
        super().__init__()
        self.arenas = [Arena(SIZE)]
        self.live: list[dict[Buffer, Any]] = [{}]

    arrays = Bundle("arrays")
    branches = Bundle("branches")

    @rule(target=branches)
    def first(self) -> Any:
        return 0

    @rule(
        target=arrays, branch=branches, shape=shapes, dtype=dtypes, apart=st.booleans()
    )
    def take(self, branch: int, shape: Any, dtype: str, apart: bool) -> Any:
        array, buffer = self.arenas[branch].empty(shape, np.dtype(dtype), apart=apart)
        assert (array.shape, array.dtype) == (shape, np.dtype(dtype))
        assert array.flags.c_contiguous
        assert start(array) % ALIGNMENT == 0
        if apart:
            others = [a for live in self.live for a in live.values()]
            assert not any(overlap(array, other) for other in others)
        array[...] = len(self.live[branch]) % 2
        buffer.users += 1
        self.live[branch][buffer] = array
        return branch, buffer

    @rule(given=consumes(arrays))
    def release(self, given: Any) -> None:
        branch, buffer = given
        if self.live[branch].pop(buffer, None) is not None:
            self.arenas[branch].release(buffer)

    @rule(target=branches, branch=branches)
    def branch(self, branch: int) -> Any:
        """From here on both have what lives, and neither sees what the other does."""
        if len(self.arenas) == 4:
            return branch
        arena = self.arenas[branch].branched()
        live = {}
        for buffer, array in self.live[branch].items():
            copy = arena.owner(array)
            assert copy is not None
            assert copy is not buffer
            assert copy.users == buffer.users
            live[copy] = array
        assert len(live) == len(self.live[branch])
        self.arenas.append(arena)
        self.live.append(live)
        return len(self.arenas) - 1

    @rule(target=arrays, branch=branches)
    def arrays_of(self, branch: int) -> Any:
        """Some that a branch has from before may be released there, too."""
        live_names = list(self.live[branch])[:1]
        return (
            multiple() if branch == 0 else multiple(*((branch, b) for b in live_names))
        )

    @rule(given=arrays, key=st.integers(0, 5))
    def look(self, given: Any, key: int) -> None:
        branch, buffer = given
        array = self.live[branch].get(buffer)
        if array is None:
            return
        view = views(array)[key]
        if view.size:
            assert self.arenas[branch].owner(view) is buffer

    @invariant()
    def nothing_overlaps(self) -> None:
        for arena, live in zip(self.arenas, self.live, strict=True):
            places = sorted((start(a), stretch(a)) for a in live.values())
            for (low, size), (after, _) in zip(places, places[1:], strict=False):
                assert low + size <= after
            for buffer, array in live.items():
                assert arena.owner(array) is buffer

    @invariant()
    def others_are_of_no_arena(self) -> None:
        assert all(arena.owner(np.ones(3)) is None for arena in self.arenas)


def overlap(a: Any, b: Any) -> bool:
    (low, high), (other, last) = byte_bounds(a), byte_bounds(b)
    return bool(max(low, other) < min(high, last))


def views(array: Any) -> list[Any]:
    """Views that start elsewhere, or run backwards."""
    backwards = array[..., *(slice(None, None, -1) for _ in array.shape)]
    last = array[..., *(slice(-1, None) for _ in array.shape)]
    spread = np.broadcast_to(array, (3, *array.shape))
    steps = array[..., *(slice(None, None, -2) for _ in array.shape)]
    return [array, array.T, backwards, last, spread, steps.T]


TestMemory = Memory.TestCase
TestMemory.settings = settings(max_examples=example_count(100), stateful_step_count=40)


def test_released_memory_serves_again() -> None:
    arena = Arena(SIZE)
    rng = np.random.default_rng(0)
    live: list[tuple[Any, Buffer]] = []
    most = now = 0
    for _ in range(3000):
        if len(live) > 8 or (live and rng.random() < 0.45):
            array, buffer = live.pop(int(rng.integers(len(live))))
            arena.release(buffer)
            now -= stretch(array)
        else:
            shape = tuple(rng.integers(1, 9, 2).tolist())
            live.append(arena.empty(shape, np.dtype(np.float32)))
            now += stretch(live[-1][0])
            most = max(most, now)
    assert most <= SIZE
    # Nine arrays of at most 256 bytes leave no gap too small for another.
    assert len(arena._chunks) == 1


def test_all_that_is_released_is_one_stretch_again() -> None:
    arena = Arena(SIZE)
    rng = np.random.default_rng(1)
    for turn in range(50):
        taken = [
            arena.empty(tuple(rng.integers(0, 9, 2).tolist()), np.dtype(np.float32))[1]
            for _ in range(1 + turn % 9)
        ]
        for index in rng.permutation(len(taken)).tolist():
            arena.release(taken[index])
        assert arena._free == [[(0, SIZE)]]
        assert not arena._used


def test_what_is_larger_than_the_arena_has_a_chunk() -> None:
    arena = Arena(SIZE)
    small, _ = arena.empty((4,), np.dtype(np.float32))
    large, buffer = arena.empty((SIZE,), np.dtype(np.float64))
    again = arena.owner(large[::-1])
    assert again is buffer
    assert arena.owner(small) is not buffer
    arena.release(buffer)
    other, _ = arena.empty((SIZE,), np.dtype(np.float64))
    assert start(other) == start(large)


def test_the_tightest_stretch_is_taken() -> None:
    arena = Arena(SIZE)
    kept = [arena.empty((n * 16,), np.dtype(np.float32)) for n in (4, 1, 2, 1, 8)]
    for index in (0, 2):
        arena.release(kept[index][1])
    array, _ = arena.empty((30,), np.dtype(np.float32))
    assert start(array) == start(kept[2][0])


def test_branches_have_what_is_apart_alone() -> None:
    arena = Arena(SIZE)
    shared, _ = arena.empty((8,), np.dtype(np.float32))
    first, second = arena.branched(), arena.branched()
    a, _ = first.empty((8,), np.dtype(np.float32))
    b, _ = second.empty((8,), np.dtype(np.float32))
    assert start(a) == start(b) != start(shared)  # they never live at one time
    c, buffer = first.empty((8,), np.dtype(np.float32), apart=True)
    first.release(buffer)
    for _ in range(200):
        other, _ = second.empty((8,), np.dtype(np.float32))
        assert not overlap(other, c)
