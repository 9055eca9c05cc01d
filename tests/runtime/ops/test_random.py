"""Random numbers: the published vectors, distributions, determinism."""

import numpy as np
import pytest

import burn
from burn import ops
from burn.ops.random import philox4x32
from tests.runtime.gradcheck import check_gradient


def state(key: int = 42, counter: int = 0) -> burn.Tensor:
    return burn.tensor(np.array([key, counter], np.uint64))


# Known answers of the generator's authors (Random123, philox4x32-10).
VECTORS = [
    ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
    (
        [0xFFFFFFFF] * 4,
        [0xFFFFFFFF] * 2,
        [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD],
    ),
    (
        [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
        [0xA4093822, 0x299F31D0],
        [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
    ),
]


@pytest.mark.parametrize(("counter", "key", "expected"), VECTORS)
def test_known_answers(counter: list[int], key: list[int], expected: list[int]) -> None:
    words = philox4x32(np.array(counter, np.uint64)[:, None], (key[0], key[1]))
    assert words[:, 0].tolist() == expected


def test_numbers_go_on_where_they_stopped() -> None:
    whole, _ = ops.uniform(state(), (3, 4, 5))
    first, after = ops.uniform(state(), (2, 4, 5))
    rest, _ = ops.uniform(after, (1, 4, 5))
    np.testing.assert_array_equal(
        whole.numpy(), np.concatenate([first.numpy(), rest.numpy()])
    )
    other, _ = ops.uniform(state(43), (3, 4, 5))
    assert not np.any(other.numpy() == whole.numpy())
    end, after = ops.uniform(state(1, 2**64 - 1), (8,))
    assert after.tolist() == [1, 1]
    assert len(set(end.tolist())) == 8


@pytest.mark.parametrize("dtype", [burn.float32, burn.float64, burn.float16])
def test_uniform(dtype: burn.dtypes.DType) -> None:
    actual = ops.uniform(state(), (50, 40, 30), -1.0, 3.0, dtype=dtype)[0]
    assert actual.dtype == dtype
    x = actual.numpy().astype(np.float64)
    assert x.min() >= -1.0
    assert x.max() <= 3.0
    np.testing.assert_allclose([x.mean(), x.var()], [1.0, 16 / 12], atol=0.02)


@pytest.mark.parametrize("dtype", [burn.float32, burn.float64])
def test_normal(dtype: burn.dtypes.DType) -> None:
    actual = ops.normal(state(), (51, 41, 31), 2.0, 0.5, dtype=dtype)[0]
    assert actual.dtype == dtype
    z = (actual.numpy().astype(np.float64) - 2.0) / 0.5
    moments = [np.mean(z**power) for power in (1, 2, 3, 4)]
    np.testing.assert_allclose(moments, [0, 1, 0, 3], atol=0.06)


def test_bernoulli() -> None:
    p = burn.tensor(np.tile(np.array([0.0, 0.25, 1.0], np.float32), (2, 20000, 1)))
    drawn, after = ops.bernoulli(state(), p)
    np.testing.assert_allclose(drawn.numpy().mean((0, 1)), [0.0, 0.25, 1.0], atol=0.01)
    assert after.tolist() == [42, 30000]
    assert ops.bernoulli(state(), p, dtype=burn.bool_)[0].dtype == burn.bool_


def test_dropout() -> None:
    x = np.random.default_rng(0).standard_normal((20, 30, 40))
    y, after = ops.dropout(burn.tensor(x), state(), p=0.3)
    kept = y.numpy() != 0
    np.testing.assert_allclose(kept.mean(), 0.7, atol=0.01)
    np.testing.assert_allclose(y.numpy()[kept], x[kept] / 0.7, rtol=1e-6)
    assert after.tolist() == [42, 6000]
    check_gradient(lambda t: ops.dropout(t, state(), p=0.3), x[:2, :3, :4])
    assert not np.any(ops.dropout(burn.tensor(x), state(), p=1.0)[0].numpy())
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        ops.dropout(burn.tensor(x), state(), p=1.5)


def test_multinomial() -> None:
    logits = np.log(np.array([[0.2, 0.0, 0.8], [0.5, 0.25, 0.25]]) + 1e-300)
    drawn, after = ops.multinomial(state(), burn.tensor(logits - 50), 30000)
    assert (drawn.shape, drawn.dtype) == ((2, 30000), burn.int32)
    assert after.tolist() == [42, 30000]
    counts = [np.bincount(row, minlength=3) / 30000 for row in drawn.numpy()]
    np.testing.assert_allclose(counts, [[0.2, 0, 0.8], [0.5, 0.25, 0.25]], atol=0.01)


def test_dropout_by_seed_draws_what_numpy_drew() -> None:
    x = np.random.default_rng(0).standard_normal((5, 6, 7)).astype(np.float32)
    kept = np.random.RandomState(9).uniform(size=x.shape) >= 0.3
    for _ in range(2):
        y, mask = ops.dropout_by_seed(burn.tensor(x), 0.3, seed=9)
        np.testing.assert_array_equal(mask.numpy(), kept)
        np.testing.assert_allclose(y.numpy(), np.where(kept, x / 0.7, 0), rtol=1e-6)
    same, mask = ops.dropout_by_seed(burn.tensor(x), 0.3, False, seed=9)
    np.testing.assert_array_equal(same.numpy(), x)
    assert mask.numpy().all()
    ratio = burn.tensor(np.array(1.0))
    none, mask = ops.dropout_by_seed(burn.tensor(x), ratio, seed=9)
    assert not none.numpy().any()
    check_gradient(lambda t: ops.dropout_by_seed(t, 0.3, seed=9)[0], x)


def test_dropout_with_mask() -> None:
    x = np.random.default_rng(0).standard_normal((20, 30, 40))
    y, kept, after = ops.dropout_with_mask(burn.tensor(x), state(), 0.3)
    np.testing.assert_allclose(kept.numpy().mean(), 0.7, atol=0.01)
    np.testing.assert_allclose(y.numpy(), x * kept.numpy() / 0.7, rtol=1e-6)
    assert after.tolist() == [42, 6000]
    check_gradient(lambda t: ops.dropout_with_mask(t, state(), 0.3)[0], x[:2, :3, :4])
