"""Attention by loops over queries and keys, and its gradients of both orders."""

from typing import Any

import numpy as np
import pytest

import burn
from burn import ops
from tests.runtime.gradcheck import check_gradient

RNG = np.random.default_rng(11)
BATCH, HEADS, GROUPS, ROWS, COLUMNS, SIZE, OUT = 2, 6, 3, 3, 5, 4, 2
QUERY = RNG.standard_normal((BATCH, HEADS, ROWS, SIZE))
KEY = RNG.standard_normal((BATCH, GROUPS, COLUMNS, SIZE))
VALUE = RNG.standard_normal((BATCH, GROUPS, COLUMNS, OUT))


def by_loops(seen: Any, scale: float = SIZE**-0.5, sink: Any = None) -> Any:
    """Attention where query ``i`` of batch ``b`` sees key ``j`` if ``seen`` says so."""
    out = np.zeros((BATCH, HEADS, ROWS, OUT))
    for b, h, i in np.ndindex(BATCH, HEADS, ROWS):
        group = h // (HEADS // GROUPS)
        keys = [j for j in range(COLUMNS) if seen(b, h, i, j)]
        scores = [np.exp(QUERY[b, h, i] @ KEY[b, group, j] * scale) for j in keys]
        total = sum(scores) + (0 if sink is None else np.exp(sink[h]))
        for j, score in zip(keys, scores, strict=True):
            out[b, h, i] += score / total * VALUE[b, group, j]
    return out


def check(expected: Any, *extra: Any, **options: Any) -> None:
    """Assert that attention with these arguments is ``expected``."""
    operands = [
        burn.tensor(x) if isinstance(x, np.ndarray) else x
        for x in (QUERY, KEY, VALUE, *extra)
    ]
    actual = ops.attention(*operands, **options)
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-10)


def test_heads_share_keys() -> None:
    check(by_loops(lambda *_: True, scale=0.3), scale=0.3)


@pytest.mark.parametrize(
    "shape",
    [(ROWS, 1), (1, COLUMNS), (HEADS, 1, COLUMNS), (BATCH, 1, ROWS, COLUMNS)],
)
def test_masks_broadcast(shape: tuple[int, ...]) -> None:
    mask = RNG.random(shape) > 0.4
    whole = np.broadcast_to(mask, (BATCH, HEADS, ROWS, COLUMNS))
    if shape[-1] > 1:
        check(by_loops(lambda *place: whole[place]), mask)
        check(by_loops(lambda *place: whole[place]), np.where(mask, 0.0, -np.inf))


def test_a_shorter_mask_hides_the_keys_behind() -> None:
    mask = np.array([[True, False, True]] * ROWS)
    check(by_loops(lambda b, h, i, j: j in (0, 2)), mask)
    check(by_loops(lambda b, h, i, j: j < 3), np.zeros((ROWS, 3)))


@pytest.mark.parametrize("offset", [0, 2, np.array([1, 3])])
def test_causal_and_windows(offset: Any) -> None:
    start = np.broadcast_to(offset, BATCH)
    causal = by_loops(lambda b, h, i, j: j <= i + start[b])
    check(causal, None, offset, causal=True)
    check(causal, None, offset, window=(-1, 0))
    window = by_loops(lambda b, h, i, j: -1 <= j - i - start[b] <= 2)
    check(window, None, offset, window=(1, 2))
    both = by_loops(lambda b, h, i, j: -1 <= j - i - start[b] <= 0)
    check(both, None, offset, window=(1, 2), causal=True)


def test_who_sees_nothing_takes_nothing() -> None:
    lengths = np.array([0, 4])
    expected = by_loops(lambda b, h, i, j: j < lengths[b])
    assert not expected[0].any()
    check(expected, None, 0, lengths)
    check(by_loops(lambda b, h, i, j: j <= i - 1), None, -1, causal=True)


def test_sinks_take_a_share() -> None:
    sink = RNG.standard_normal(HEADS)
    expected = by_loops(lambda b, h, i, j: j <= i, sink=sink)
    check(expected, None, 0, None, sink, causal=True)


def test_no_keys() -> None:
    key, value = burn.tensor(KEY[:, :, :0]), burn.tensor(VALUE[:, :, :0])
    out = ops.attention(burn.tensor(QUERY), key, value).numpy()
    np.testing.assert_array_equal(out, np.zeros((BATCH, HEADS, ROWS, OUT)))


@pytest.mark.parametrize("dtype", [burn.float16, burn.bfloat16])
def test_half_types(dtype: Any) -> None:
    operands = [burn.tensor(x.astype(dtype)) for x in (QUERY, KEY, VALUE)]
    actual = ops.attention(*operands, causal=True)
    assert actual.dtype == dtype
    expected = by_loops(lambda b, h, i, j: j <= i)
    error = np.abs(actual.numpy().astype(np.float64) - expected).max()
    assert 0 < error < (0.01 if dtype == burn.float16 else 0.06)


def test_gradients_of_attention() -> None:
    mask = burn.tensor(RNG.random((BATCH, 1, ROWS, COLUMNS)) > 0.3)

    def attention(query: Any, key: Any, value: Any, sink: Any) -> Any:
        return ops.attention(
            query, key, value, mask, 1, None, sink, softcap=2.0, causal=True
        )

    check_gradient(attention, QUERY, KEY, VALUE, RNG.standard_normal(HEADS))


@pytest.mark.parametrize("circular", [False, True])
@pytest.mark.parametrize("axis", [1, -2, 3])
def test_gradients_of_caches(axis: int, circular: bool) -> None:
    cache = RNG.standard_normal((2, 4, 3, 4))
    cut = tuple(slice(0, 2) if a == axis % 4 else slice(None) for a in range(4))
    update = RNG.standard_normal(cache[cut].shape)
    starts = burn.tensor(np.array([1, 0 if not circular else 3]))

    def write(cache: Any, update: Any) -> Any:
        return ops.tensor_scatter(cache, update, starts, axis=axis, circular=circular)

    def read(cache: Any) -> Any:
        return ops.tensor_gather(cache, starts, count=2, axis=axis, circular=circular)

    written = write(burn.tensor(cache), burn.tensor(update))
    np.testing.assert_array_equal(read(written).numpy(), update)
    check_gradient(write, cache, update)
    check_gradient(read, cache)


def test_a_cache_is_made_as_long_as_asked() -> None:
    cache, update = RNG.standard_normal((2, 2, 3, 4)), RNG.standard_normal((2, 2, 2, 4))
    starts = np.array([1, 3])
    places = burn.tensor(starts)
    actual = ops.extend_cache(
        burn.tensor(cache), burn.tensor(update), places, 6
    ).numpy()
    for b, start in enumerate(starts):
        np.testing.assert_array_equal(actual[b, :, :start], cache[b, :, :start])
        np.testing.assert_array_equal(actual[b, :, start : start + 2], update[b])
        assert not actual[b, :, start + 2 :].any()
    assert actual.shape == (2, 2, 6, 4)


@pytest.mark.parametrize("with_state", [False, True])
@pytest.mark.parametrize("gates", ["", "decay", "beta", "decay beta"])
def test_gradients_of_linear_attention(gates: str, with_state: bool) -> None:
    operands: list[Any] = [0.5 * x for x in (QUERY[:, :, :2], KEY[:, :, :2])]
    operands.append(VALUE[:, :, :2])
    present = {"state": with_state, "decay": "decay" in gates, "beta": "beta" in gates}
    extra = {
        "state": RNG.standard_normal((BATCH, GROUPS, SIZE, OUT)),
        "decay": -RNG.random((BATCH, GROUPS, 2, SIZE)),
        "beta": RNG.random((BATCH, 1, 2, 1)),
    }
    operands += [extra[name] for name, there in present.items() if there]

    def attention(query: Any, key: Any, value: Any, *rest: Any) -> Any:
        given = iter(rest)
        places = [next(given) if there else None for there in present.values()]
        return ops.linear_attention(query, key, value, *places)

    check_gradient(attention, *operands, tol=1e-5)


@pytest.mark.parametrize("interleaved", [False, True])
def test_rotation_keeps_length_and_position_zero(interleaved: bool) -> None:
    x = RNG.standard_normal((2, 3, 5, 8))
    angles = np.arange(9)[:, None] * np.array([1.0, 0.3, 0.1])
    cos, sin = (burn.tensor(f(angles)) for f in (np.cos, np.sin))
    positions = np.array([[0, 4, 8, 1, 2], [3, 0, 0, 7, 5]])

    def rotate(x: Any) -> Any:
        places = burn.tensor(positions)
        return ops.rotary_embedding(x, cos, sin, places, interleaved=interleaved)

    actual = rotate(burn.tensor(x)).numpy()
    np.testing.assert_array_equal(actual[..., 6:], x[..., 6:])
    np.testing.assert_allclose(actual[0, :, 0], x[0, :, 0])
    pairs = [(2 * i, 2 * i + 1) if interleaved else (i, i + 3) for i in range(3)]
    for n, (i, j) in enumerate(pairs):
        before, after = x[..., i] + 1j * x[..., j], actual[..., i] + 1j * actual[..., j]
        turn = np.exp(1j * angles[positions][:, None, :, n])
        np.testing.assert_allclose(after, before * turn)
    check_gradient(rotate, x)


@pytest.mark.parametrize("causal", [False, True])
def test_without_an_axis_for_heads_there_is_one(causal: bool) -> None:
    query, key, value = QUERY[:, 0], KEY[:, 0], VALUE[:, 0]
    seen = np.arange(BATCH * ROWS * COLUMNS).reshape(BATCH, ROWS, COLUMNS) % 3 != 1
    options: dict[str, Any] = {"scale": 0.3, "causal": causal}
    operands = [burn.tensor(x) for x in (query, key, value, seen)]
    apart = [burn.tensor(x[:, None]) for x in (query, key, value, seen)]
    actual = ops.attention(*operands, **options)
    np.testing.assert_array_equal(
        actual.numpy(), ops.attention(*apart, **options).numpy()[:, 0]
    )
    assert actual.shape == (BATCH, ROWS, OUT)


@pytest.mark.parametrize("compiled", [False, True])
def test_scores_of_minus_infinity_are_nan_where_nothing_hides_keys(
    compiled: bool,
) -> None:
    def attended(q: Any, k: Any, *mask: Any) -> Any:
        return ops.attention(q, k, k, *mask)

    q = np.array([[[[-np.inf, 1], [1, 1]]]], np.float32)
    k = np.ones((1, 1, 3, 2), np.float32)
    hidden = np.zeros((2, 3), bool)
    function = burn.compile(attended) if compiled else attended
    for _ in range(2):
        out = function(burn.tensor(q), burn.tensor(k)).numpy()
        assert np.isnan(out[0, 0, 0]).all()
        np.testing.assert_allclose(out[0, 0, 1], 1, rtol=1e-6)
        out = function(burn.tensor(q), burn.tensor(k), burn.tensor(hidden)).numpy()
        assert (out == 0).all()
