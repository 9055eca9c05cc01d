"""Arithmetic and Einstein's sums of eager calls by oneDNN are NumPy's."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import burn
from burn import ops
from burn.backend.cpu.onednn.binding import engine
from burn.backend.cpu.onednn.kernels import elementwise
from tests.runtime.onednn import both, by_numpy, compare, laid_out, needs_onednn, normal
from tests.sampling import example_count

pytestmark = needs_onednn
PAIRS = [ops.add, ops.sub, ops.mul, ops.div]
SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 3e38, -3e38, 1e-40]
shapes = st.lists(st.integers(1, 5), min_size=1, max_size=4).map(tuple)


def special(*shape: int, seed: int) -> Any:
    """Numbers most of which have rules of their own."""
    return np.random.default_rng(seed).choice(SPECIAL, shape).astype(np.float32)


@settings(max_examples=example_count(40))
@given(op=st.sampled_from([*PAIRS, ops.relu]), shape=shapes, data=st.data())
def test_equal(op: Callable[..., Any], shape: Any, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(shape))))
    make = data.draw(st.sampled_from([normal, special]))
    arrays = [laid_out(make(*shape, seed=seed), order) for seed in (0, 1)]
    actual, expected = both(op, *(arrays[:1] if op is ops.relu else arrays))
    np.testing.assert_array_equal(actual, expected)
    if op is not ops.relu:  # whose sign of zero is unspecified
        numbers = ~np.isnan(expected)
        np.testing.assert_array_equal(
            np.signbit(actual[numbers]), np.signbit(expected[numbers])
        )


@settings(max_examples=example_count(40))
@given(
    shape=shapes,
    low=st.sampled_from([None, 0, -1.0, 0.5, -np.inf]),
    high=st.sampled_from([None, 0, 6.0, -0.25, np.inf]),
    most=st.sampled_from([0, 999]),
    data=st.data(),
)
def test_clip(shape: Any, low: Any, high: Any, most: int, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(shape))))
    x = laid_out(data.draw(st.sampled_from([normal, special]))(*shape, seed=2), order)
    if low is None is high:
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(elementwise, "CLIPPING", most)
        if most and low is not None is not high:
            with engine.whatever_size():
                actual = ops.clip(burn.from_numpy(x), low, high).numpy()
            expected = ops.clip.kernel(x, low, high)
        else:
            actual, expected = both(ops.clip, x, low=low, high=high)
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("bound", [np.nan, np.array([0.5], np.float32)])
def test_other_bounds_are_numpys(bound: Any) -> None:
    by_numpy(ops.clip, normal(2, 3, 5), low=bound)


def test_relu_keeps_nan_and_loses_minus_infinity() -> None:
    x = normal(3, 7, 11)
    x[0, 0, :3] = np.nan, -np.inf, np.inf
    actual, _ = both(ops.relu, x)
    np.testing.assert_array_equal(actual[0, 0, :3], [np.nan, 0, np.inf])


def test_code_that_loses_nan_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elementwise._Bound, "keeps_nan", lambda self, size: False)
    x = normal(2, 3, 13)
    by_numpy(ops.relu, x)


@pytest.mark.parametrize("op", PAIRS)
@pytest.mark.parametrize(
    "make",
    [
        lambda x: (x, x.transpose(1, 0, 2)),
        lambda x: (x[:, :, ::2], x[:, :, 1::2]),
        lambda x: (x, x[0]),
        lambda x: (x, x.astype(np.float64)),
        lambda x: (x.astype(np.int32), x.astype(np.int32)),
    ],
    ids=["orders", "gaps", "broadcast", "float64", "integers"],
)
def test_other_pairs_are_numpys(op: Any, make: Any) -> None:
    x, y = make(normal(4, 4, 6) + 3)
    by_numpy(op, x, y)


def test_numbers_and_small_arrays_are_numpys() -> None:
    session = engine.current()
    assert session is not None
    session.primitives.clear()
    x = burn.from_numpy(normal(3, 5, 7))
    expected = 2 - x.numpy() * 2 + x.numpy()
    np.testing.assert_array_equal((2 - x * 2 + x).numpy(), expected)
    assert not session.primitives.implementations()


EQUATIONS = {
    "heads": ("bqhd,bkhd->bhqk", (2, 3, 4, 5), (2, 6, 4, 5)),
    "values": ("bhqk,bkhd->bqhd", (2, 4, 3, 6), (2, 6, 4, 5)),
    "several rows": ("abc,cd->abd", (2, 3, 4), (4, 5)),
    "several summed": ("abcd,cde->abe", (2, 3, 4, 5), (4, 5, 6)),
    "summed alone": ("abk,kcx->acb", (2, 3, 4), (4, 5, 6)),
    "ellipsis": ("...ij,...jk->...ik", (2, 3, 4, 5), (2, 3, 5, 6)),
    "without a result": ("aij,ajk", (2, 3, 4), (2, 4, 5)),
    "one row": ("bi,bij->bj", (3, 4), (3, 4, 5)),
}


@pytest.mark.parametrize("case", EQUATIONS)
@pytest.mark.parametrize("turned", [False, True])
def test_einsum(case: str, turned: bool) -> None:
    equation, *extents = EQUATIONS[case]
    arrays = [normal(*shape, seed=seed) for seed, shape in enumerate(extents)]
    if turned:
        arrays = [laid_out(x, range(x.ndim)[::-1]) for x in arrays]
    compare(lambda x, y: ops.einsum(equation, [x, y]), *arrays)


@pytest.mark.parametrize(
    ("equation", "left", "right"),
    [
        ("aij,aij->aij", (2, 3, 4), (2, 3, 4)),
        ("aij,aij->a", (2, 3, 4), (2, 3, 4)),
        ("ai,bj->abij", (2, 3), (4, 5)),
        ("iij,jk->ik", (3, 3, 4), (4, 5)),
        ("aij,ajk->aik", (2, 3, 1), (2, 4, 5)),
    ],
    ids=["elements", "dots", "outer", "diagonal", "broadcast"],
)
def test_what_is_no_product_of_matrices_is_numpys(
    equation: str, left: Any, right: Any
) -> None:
    arrays = (normal(*left), normal(*right))
    by_numpy(lambda x, y: ops.einsum(equation, [x, y]), *arrays)


@pytest.mark.parametrize(
    ("equation", "left", "right"),
    [
        ("ij,jk->ik", (2, 3, 4), (4, 5)),
        ("ij,jk->ikz", (2, 3), (3, 4)),
        ("ij,jk->ik", (2, 3), (4, 5)),
    ],
    ids=["rank", "result", "extent"],
)
def test_what_does_not_fit_is_refused_as_by_numpy(
    equation: str, left: Any, right: Any
) -> None:
    x, y = burn.from_numpy(normal(*left)), burn.from_numpy(normal(*right))
    messages = []
    for switched in (engine.whatever_size, engine.numpy_only):
        with switched(), pytest.raises(ValueError, match=r".") as caught:
            ops.einsum(equation, [x, y])
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
