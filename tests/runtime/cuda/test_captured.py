"""Plans of these operations are CUDA graphs: nothing is copied from or to the host."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import burn
from burn import ops
from burn.backend.cuda.kernels.products.einsum import contract_pair
from burn.ops.matmul import explicit
from tests.runtime.onednn import normal

EQUATIONS = (
    *("ij,jk->ik", "bij,bjk->bik", "bhqd,bhkd->bhqk", "bhqk,bkhd->bqhd"),
    *("ij,kj->ik", "i,i->", "i,j->ij", "bi,bi->b", "...ij,...jk->...ik", "bid,d->bi"),
    *("abc,cde->abde", "abx,bc->ac", "ij,jk", "ab,ba->ab", "bij,bjk->jk"),
)
EXTENTS = dict(zip("abcdehijkqx", (2, 3, 4, 5, 2, 3, 3, 4, 3, 5, 3), strict=True))


def operand(term: str, seed: int) -> Any:
    """Return an operand of the labels, with two axes for an ellipsis."""
    labels = term.replace("...", "ab")
    return np.asarray(normal(*(EXTENTS[label] for label in labels), seed=seed))


@pytest.mark.parametrize("equation", EQUATIONS)
def test_sums_are_products(equation: str) -> None:
    terms = equation.partition("->")[0].split(",")
    xs = [operand(term, seed) for seed, term in enumerate(terms)]
    labels, result = explicit(equation, [x.ndim for x in xs])
    actual = contract_pair(xs, labels, result, np.matmul)
    assert actual is not None
    expected = np.einsum(equation, *xs)
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("equation", "shapes"),
    (("ii,ij->j", ((3, 3), (3, 4))), ("ab,ab->b", ((1, 3), (4, 3)))),
)
def test_sums_that_are_no_products(equation: str, shapes: Any) -> None:
    xs = [np.asarray(normal(*shape)) for shape in shapes]
    labels, result = explicit(equation, [x.ndim for x in xs])
    assert contract_pair(xs, labels, result, np.matmul) is None


def conv(padding: Any, groups: int = 1) -> Callable[..., Any]:
    return lambda x, w: ops.relu(
        ops.conv(x, w, stride=2, padding=padding, groups=groups)
    )


ASYMMETRIC = ((0, 1), (2, 1))
INDICES = np.array([2, 0, 1, 2])
#: By name: a function, and the shapes of its operands.
CASES: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "lstm": (
        lambda x, w, r: ops.lstm(x, w, r)[0],
        ((5, 2, 6), (1, 32, 6), (1, 32, 8)),
    ),
    "many steps": (
        lambda x, w, r: ops.lstm(x, w, r)[0],
        ((70, 1, 6), (1, 32, 6), (1, 32, 8)),
    ),
    "concat": (lambda x: ops.concat([x, x[:, :2], x] * 20, axis=1), ((2, 3, 5),)),
    "stack": (lambda x: ops.stack([x, x + 1.0] * 20, axis=-1), ((2, 3, 5),)),
    "entry": (lambda x: ops.take(x, 2, axis=1), ((2, 3, 5),)),
    "gru": (
        lambda x, w, r: ops.gru(x, w, r, direction="bidirectional")[0],
        ((5, 2, 6), (2, 24, 6), (2, 24, 8)),
    ),
    "einsum": (
        lambda x, y: ops.einsum("bqhd,bkhd->bhqk", [x, y]),
        ((2, 5, 3, 8), (2, 7, 3, 8)),
    ),
    "resize cubic": (
        lambda x: ops.resize(x, sizes=(2, 3, 9, 13), mode="cubic"),
        ((2, 3, 5, 7),),
    ),
    "resize linear": (
        lambda x: ops.resize(x, sizes=(2, 3, 9, 13), mode="linear"),
        ((2, 3, 5, 7),),
    ),
    "resize nearest": (
        lambda x: ops.resize(x, sizes=(2, 3, 9, 13), mode="nearest"),
        ((2, 3, 5, 7),),
    ),
    "pad": (
        lambda x: ops.pad(x, (0, 0, 1, 2, 0, 0, 2, 1), mode="reflect"),
        ((2, 3, 5, 7),),
    ),
    "take": (lambda x: ops.take(x, INDICES, axis=1), ((2, 3, 5),)),
    "average pool": (
        lambda x: ops.avg_pool(x, kernel_size=3, stride=1, padding=1),
        ((2, 3, 5, 7),),
    ),
    "conv": (conv(ASYMMETRIC), ((2, 8, 8, 9), (16, 8, 3, 3))),
    "depthwise": (conv(ASYMMETRIC, 8), ((2, 8, 8, 9), (8, 1, 3, 3))),
    "grouped": (conv(ASYMMETRIC, 2), ((2, 8, 8, 9), (16, 4, 3, 3))),
    "conv of sequences": (conv(((0, 1),)), ((2, 8, 9), (16, 8, 3))),
}


@pytest.mark.cuda
@pytest.mark.parametrize("precision", ("float32", "tf32", "float16"))
@pytest.mark.parametrize("name", CASES)
def test_graphs(name: str, precision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cupy")
    device = burn.Cuda(0)
    monkeypatch.setattr(device, "tf32", precision == "tf32", raising=False)
    dtype = "float16" if precision == "float16" else "float32"
    function, shapes = CASES[name]
    plan = burn.compile(function)
    weights = [normal(*s, seed=9 + n) / 4 for n, s in enumerate(shapes[1:])]
    for seed in range(4):
        arrays = [
            array.astype(dtype) for array in (normal(*shapes[0], seed=seed), *weights)
        ]
        expected = function(
            *(burn.from_numpy(array.astype("float32")) for array in arrays)
        ).numpy()
        actual = plan(*(burn.from_numpy(array, device) for array in arrays)).numpy()
        atol = (1e-4 if precision == "float32" else 2e-2) * np.abs(expected).max()
        np.testing.assert_allclose(actual, expected, atol=atol, rtol=0)
    assert plan.notes == []
