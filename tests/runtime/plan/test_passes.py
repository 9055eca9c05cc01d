"""Passes over plans take what they may, and leave what they must."""

from typing import Any, NamedTuple

import numpy as np
import pytest

import burn
from burn import ops
from burn.backend.cpu.onednn.binding import engine
from burn.ops.norm import batch_norm
from burn.plan.compiled import Compiled
from burn.plan.plan_ir import Step
from tests.runtime.onednn import assert_close, normal
from tests.runtime.programs import program_of


class Weights(NamedTuple):
    """Boxes that the functions read, which tests set."""

    square: burn.Parameter  # [8, 8]
    other: burn.Parameter  # [8, 8]
    wide: burn.Parameter  # [12, 8]
    bias: burn.Parameter  # [8]
    shift: burn.Parameter  # [8]
    spread: burn.Parameter  # [8], positive
    filters: burn.Parameter  # [8, 8, 3, 3]
    double: burn.Parameter  # [8, 8] of float64
    row: burn.Parameter  # [1, 8]
    one: burn.Parameter  # [1]


SHAPES = {"wide": (12, 8), "filters": (8, 8, 3, 3), "row": (1, 8), "one": (1,)}
LINES = ("bias", "shift", "spread")


def value(name: str, seed: int) -> burn.Tensor:
    shape = (8,) if name in LINES else SHAPES.get(name, (8, 8))
    array = normal(*shape, seed=seed)
    if name == "spread":
        array = np.abs(array) + np.float32(0.2)
    return burn.from_numpy(array.astype(np.float64) if name == "double" else array)


def weights() -> Weights:
    names = Weights._fields
    return Weights(*(burn.Parameter(value(n, i + 10)) for i, n in enumerate(names)))


def product(x: Any, w: Any) -> Any:
    return ops.einsum("bij,bjk->bik", [x, ops.transpose(x, 1, 2)])


def norm(x: Any, w: Any, weight: Any = None, mean: Any = None) -> Any:
    return batch_norm(x, w.bias if mean is None else mean, w.spread, weight, w.shift)


def conv(x: Any, w: Any) -> Any:
    return ops.conv(channels(x), w.filters, w.bias, padding=1)


def channels(x: Any) -> Any:
    """``[3, 5, 8]`` as images of eight channels."""
    return ops.permute(ops.reshape(x, (3, 5, 1, 8)), (0, 3, 1, 2))


def in_two_branches(x: Any, w: Any) -> Any:
    y = ops.linear(x, w.square)
    return ops.relu(y) if bool(ops.sum(x) > 0) else ops.tanh(y)


def after_a_branch(x: Any, w: Any) -> Any:
    y = ops.linear(x, w.square)
    return ops.relu(y) if bool(ops.max(x) > -99.0) else y


def heads(x: Any, w: Any) -> list[Any]:
    """``x`` [3, 5, 8] and a matrix of weights, both in two heads of four."""
    return [ops.reshape(x, (3, 5, 2, 4)), ops.reshape(w.square, (2, 4, 8))]


IMAGE = ["reshape", "permute"]
EINSUM = "einsum"
#: Functions of ``x`` [3, 5, 8] and the weights, with the primitives that are left.
CASES: dict[str, tuple[Any, list[str] | str]] = {
    # Einstein's sums as products.
    "sum of products": (
        lambda x, w: ops.einsum("bij,bkj->bik", [x, x]),
        ["permute", "matmul"],
    ),
    "plain": (lambda x, w: ops.einsum("bij,bjk->bik", [x, x.mT]), "transpose matmul"),
    "turned result": (
        lambda x, w: ops.einsum("bij,bjk->kbi", [x, x.mT]),
        "transpose matmul permute",
    ),
    "of a weight": (
        lambda x, w: ops.einsum("bij,jk->bik", [x, w.square]),
        "transpose linear",
    ),
    "of a weight first": (
        lambda x, w: ops.einsum("jk,bij->kib", [w.square, x]),
        "permute transpose linear permute",
    ),
    "of heads": (
        lambda x, w: ops.einsum("bihd,hde->hbie", heads(x, w)),
        "reshape reshape permute reshape matmul reshape",
    ),
    "over heads": (
        lambda x, w: ops.einsum("bihd,hde->bie", heads(x, w)),
        "reshape reshape reshape reshape transpose linear",
    ),
    "of two groups": (
        lambda x, w: ops.einsum("bihd,bjhd->bhij", [heads(x, w)[0]] * 2),
        "reshape permute permute matmul",
    ),
    "of one": (lambda x, w: ops.einsum("bij->bji", [x]), ["permute"]),
    "sum of one": (lambda x, w: ops.einsum("bij->jb", [x]), "sum permute"),
    "outer": (
        lambda x, w: ops.einsum("i,j->ji", [x[0, 0], x[0, :, 0]]),
        "getitem getitem reshape reshape mul",
    ),
    "sums apart": (
        lambda x, w: ops.einsum("bij,bkl->lb", [x, x * 2.0]),
        "mul sum sum reshape permute mul",
    ),
    "of three": (
        lambda x, w: ops.einsum("bi,bi,bi->bi", [x[:, 0]] * 3),
        "getitem einsum",
    ),
    "diagonal": (
        lambda x, w: ops.einsum("bii,bij->bj", [x[:, :5, :5], x[:, :5, :5]]),
        "getitem getitem einsum",
    ),
    "nothing summed": (lambda x, w: ops.einsum("bij,bij->bij", [x, x]), ["mul"]),
    "two summed": (lambda x, w: ops.einsum("bij,bij->b", [x, x]), "mul sum"),
    "dots": (
        lambda x, w: ops.einsum("...ij,...jk->...ik", [x, x.mT]),
        "transpose matmul",
    ),
    "without arrow": (
        lambda x, w: ops.einsum("bij,bjk", [x, x.mT]),
        "transpose permute reshape reshape matmul",
    ),
    "other dtype": (
        lambda x, w: ops.einsum("bij,bkj->bik", [x.cast(burn.float64)] * 2),
        ["cast", EINSUM],
    ),
    "one repeated": (
        lambda x, w: ops.einsum("bij,bkj->bik", [x, x[:1]]),
        ["getitem", EINSUM],
    ),
    # Products with weights as layers.
    "layer": (lambda x, w: x @ w.square, "transpose linear"),
    "layer of what follows": (
        lambda x, w: x @ (w.square * 2.0),
        "mul transpose linear",
    ),
    "layer with a bias": (lambda x, w: x @ w.square + w.bias, "transpose linear"),
    "bias first": (lambda x, w: w.bias + x @ w.square, "transpose linear"),
    "weight on the left": (lambda x, w: w.square @ x.mT, "transpose matmul"),
    "not constant": (
        lambda x, w: x @ (x[0].mT @ x[0]),
        "getitem transpose getitem matmul matmul",
    ),
    "vector": (lambda x, w: x[0, 0] @ w.square, "getitem matmul"),
    "batch of weights": (
        lambda x, w: x @ ops.expand(w.square, (3, 8, 8)),
        "expand matmul",
    ),
    "float64": (lambda x, w: x.cast(burn.float64) @ w.double, "cast matmul"),
    "float64 bias": (
        lambda x, w: x @ w.square + w.double[0],
        "getitem transpose linear add",
    ),
    "number": (lambda x, w: x @ w.square + 1.0, "transpose linear add"),
    "bias of a row": (
        lambda x, w: x @ w.square + w.row,
        "transpose reshape linear",
    ),
    "bias of one": (lambda x, w: x @ w.square + w.one, "transpose linear add"),
    "two biases": (
        lambda x, w: x @ w.square + w.bias + w.shift,
        "transpose reshape add linear",
    ),
    "bias of the input": (
        lambda x, w: x @ w.square + x[0, 0],
        "transpose linear getitem add",
    ),
    "layer used twice": (
        lambda x, w: [y := x @ w.square, y + w.bias],
        "transpose linear add",
    ),
    "layer read": (
        lambda x, w: y + w.bias if bool(ops.max(y := x @ w.square) > 99) else -y,
        "transpose linear max greater neg",
    ),
    # Rows that are taken apart again.
    "rows": (
        lambda x, w: ops.reshape(
            ops.linear(ops.reshape(x, (15, 8)), w.wide), (3, 5, 12)
        ),
        "linear",
    ),
    "rows elsewhere": (
        lambda x, w: ops.reshape(ops.linear(ops.reshape(x, (15, 8)), w.wide), (5, -1)),
        "reshape linear reshape",
    ),
    "rows and others": (
        lambda x, w: [
            y := ops.linear(ops.reshape(x, (15, 8)), w.wide),
            ops.reshape(y, (3, 5, 12)),
        ],
        "reshape linear reshape",
    ),
    "rows of other extents": (
        lambda x, w: ops.reshape(
            ops.linear(ops.reshape(x, (3, 40))[:, :8], w.square), (3, 2, 4)
        ),
        "reshape getitem linear reshape",
    ),
    # Norms.
    "norm of a layer": (
        lambda x, w: norm(ops.linear(x[0], w.square, w.bias), w),
        "getitem scaled_weight shifted_bias linear",
    ),
    "norm of a convolution": (
        lambda x, w: norm(conv(x, w), w, w.bias),
        [*IMAGE, "scaled_weight", "shifted_bias", "conv"],
    ),
    "norm without bias": (
        lambda x, w: norm(ops.conv(channels(x), w.filters, padding=1), w),
        [*IMAGE, "scaled_weight", "shifted_bias", "conv"],
    ),
    "norm of both": (
        lambda x, w: [y := conv(x, w), norm(y, w)],
        [*IMAGE, "conv", "batch_norm"],
    ),
    "norm of an activation": (
        lambda x, w: norm(ops.relu(conv(x, w)), w),
        [*IMAGE, "conv_then", "batch_norm"],
    ),
    "norm by the input": (
        lambda x, w: norm(conv(x, w), w, x[0, 0]),
        [*IMAGE, "conv", "getitem", "batch_norm"],
    ),
    "norm by the mean": (
        lambda x, w: norm(conv(x, w), w, None, ops.mean(x, (0, 1))),
        [*IMAGE, "conv", "mean", "batch_norm"],
    ),
    "norm of the input": (
        lambda x, w: norm(channels(x), w),
        [*IMAGE, "batch_norm"],
    ),
    "norm of other channels": (
        lambda x, w: norm(ops.linear(x[:, 0], w.square), w, w.bias) * norm(x[:, 1], w),
        "getitem scaled_weight shifted_bias linear getitem batch_norm mul",
    ),
    # Layers of one input.
    "two": (
        lambda x, w: [ops.linear(x, w.square), ops.linear(x, w.wide)],
        "concat linear split",
    ),
    "three with biases": (
        lambda x, w: [
            ops.linear(x, w.square, w.bias),
            ops.linear(x, w.other, w.shift),
            ops.linear(x, w.other * 2.0, w.spread),
        ],
        "mul concat concat linear split",
    ),
    "one without": (
        lambda x, w: [ops.linear(x, w.square, w.bias), ops.linear(x, w.other)],
        "linear linear",
    ),
    "of two inputs": (
        lambda x, w: [ops.linear(x, w.square), ops.linear(-x, w.other)],
        "linear neg linear",
    ),
    "of the input alone": (
        lambda x, w: [ops.linear(x, w.square), ops.linear(x, x[0])],
        "linear getitem linear",
    ),
    "with an activation": (
        lambda x, w: [ops.relu(ops.linear(x, w.square)), ops.linear(x, w.other)],
        "linear_then linear",
    ),
    "later weights": (
        lambda x, w: [
            y := ops.linear(x, w.square),
            ops.linear(x, w.other * ops.mean(y)),
        ],
        "linear mean mul linear",
    ),
    "in a branch": (
        lambda x, w: (
            ops.linear(x, w.other) + y
            if bool(ops.max(y := ops.linear(x, w.square)) < 1e9)
            else y
        ),
        "linear max less linear_then",
    ),
    # Endings.
    "scaled": (lambda x, w: (x @ x.mT) * 0.5, "transpose matmul_then"),
    "divided": (lambda x, w: ops.relu((x @ x.mT) / 4.0), "transpose matmul_then"),
    "masked": (
        lambda x, w: (x @ x.mT) * 0.5 + ops.tanh(x[:, :, :5]),
        "transpose getitem tanh matmul_then",
    ),
    "divided by": (lambda x, w: 4.0 / (x @ x.mT), "transpose matmul div"),
    "by nothing": (lambda x, w: (x @ x.mT) * 0.0, "transpose matmul mul"),
    "by infinity": (lambda x, w: (x @ x.mT) / np.inf, "transpose matmul div"),
    "by a box": (lambda x, w: (x @ x.mT) * w.one, "transpose matmul mul"),
    "half": (
        lambda x, w: ops.relu(x.cast(burn.float16) @ x.mT.cast(burn.float16)),
        "cast transpose cast matmul relu",
    ),
    "other shape": (lambda x, w: ops.linear(x[:1], w.square) + x, "getitem linear add"),
    "in two branches": (in_two_branches, "linear sum greater relu tanh"),
    "after a branch": (after_a_branch, "linear max greater relu"),
}


def leaves(found: Any) -> list[Any]:
    return found if isinstance(found, list) else [found]


def left(compiled: "Compiled[Any, Any]") -> list[str]:
    """The names of the primitives of the quick plan, of all its segments."""
    program = program_of(compiled)
    assert program is not None
    segments, names = [program._root], []
    for segment in segments:
        names += [s.primitive.name for s in segment.steps if isinstance(s, Step)]
        segments += segment.children.values()
    return names


@pytest.mark.parametrize("numpy", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_what_is_left_computes_the_same(name: str, numpy: bool) -> None:
    function, names = CASES[name]
    held = weights()
    compiled = burn.compile(lambda x: function(x, held))
    for turn in range(6):
        x = burn.from_numpy(normal(3, 5, 8, seed=turn))
        if numpy:
            with engine.numpy_only():
                found = compiled(x)
        else:
            found = compiled(x)
        for a, b in zip(leaves(found), leaves(function(x, held)), strict=True):
            assert_close(a.numpy(), b.numpy(), 2e-3 if name == "half" else 1e-4)
        if turn == 1:
            for number, box in enumerate(held):
                box.set(value(held._fields[number], 40 + number))
        elif turn > 2:  # one after the other, which then are read in every run
            for number, box in enumerate(held):
                if number % 3 == turn - 3:
                    box.set(value(held._fields[number], 70 + turn + number))
    assert not compiled.notes
    assert left(compiled) == (names.split() if isinstance(names, str) else names)


def test_large_layers_of_one_input_stay_apart() -> None:
    square, wide = (burn.Parameter(burn.from_numpy(normal(n, 300))) for n in (300, 400))
    for rows, names in ((60, "concat linear split"), (90, "linear linear")):
        compiled = burn.compile(lambda x: [ops.linear(x, w) for w in (square, wide)])
        x = burn.from_numpy(normal(rows, 300))
        compiled(x)
        for found, weight in zip(compiled(x), (square, wide), strict=True):
            assert_close(found.numpy(), ops.linear(x, weight).numpy())
        assert left(compiled) == names.split()
