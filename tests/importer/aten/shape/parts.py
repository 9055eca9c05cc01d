"""Slices, splits, concatenation, padding and repetition."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.importer.aten.case import Case, Extent, N, bools, case, f32, fixed, i64
from tests.importer.aten.inputs import F32, WHOLE, X

LAST = Extent(2)
LONG = f32("n", 7, 3)


def listed(parts: Any) -> list[Any]:
    return list(parts)


def windows(x: Any, size: int, step: int, axis: int) -> Any:
    result = np.lib.stride_tricks.sliding_window_view(x, size, axis)
    return np.take(result, range(0, result.shape[axis], step), axis)


def padded(mode: str, *pads: tuple[int, int]) -> Any:
    """Return the function that pads the last axes."""

    def run(x: Any) -> Any:
        kept = [(0, 0)] * (x.ndim - len(pads))
        return np.pad(x, [*kept, *pads], mode)  # type: ignore[call-overload]

    return run


SLICES = (
    case(
        "slice.Tensor",
        lambda x: x[:, 1:-1:2],
        self=LONG,
        dim=1,
        start=1,
        end=-1,
        step=2,
    ),
    case("slice.Tensor", lambda x: x[-3:], label="last", self=LONG, dim=0, start=-3),
    case(
        "slice.Tensor",
        lambda x: x[:, :, :100],
        label="beyond",
        self=LONG,
        dim=-1,
        end=100,
    ),
    case(
        "slice.Tensor",
        lambda x: x[:, : len(x)],
        label="sized",
        self=LONG,
        dim=1,
        start=0,
        end=N,
    ),
    case("narrow.default", lambda x: x[:, 2:5], self=LONG, dim=1, start=2, length=3),
    case(
        "narrow.default",
        lambda x: x[:, -3:],
        label="last",
        self=LONG,
        dim=1,
        start=-3,
        length=3,
    ),
    case("select.int", lambda x: x[:, 2], self=LONG, dim=1, index=2),
    case("select.int", lambda x: x[..., -1], label="last", self=LONG, dim=-1, index=-1),
    case("unbind.int", lambda x: [x[:, i] for i in range(3)], self=X, dim=1),
    case(
        "split.Tensor", lambda x: np.split(x, [3, 6], 1), self=LONG, split_size=3, dim=1
    ),
    case(
        "split.sizes",
        lambda x: np.split(x, [1, 5], 1),
        self=LONG,
        split_size=[1, 4, 2],
        dim=1,
    ),
    case(
        "split_with_sizes.default",
        lambda x: np.split(x, [4], -2),
        self=LONG,
        split_sizes=[4, 3],
        dim=-2,
    ),
    case("chunk.default", lambda x: np.split(x, [3, 6], 1), self=LONG, chunks=3, dim=1),
    case(
        "tensor_split.sections",
        lambda x: np.array_split(x, 3, 1),
        self=LONG,
        sections=3,
        dim=1,
    ),
    case(
        "tensor_split.sections",
        lambda x: np.array_split(x, 3, 1),
        label="varying",
        self=f32(2, "n"),
        sections=3,
        dim=1,
    ),
    case(
        "tensor_split.indices",
        lambda x: np.split(x, [1, 4], 1),
        self=LONG,
        indices=[1, 4],
        dim=1,
    ),
    case("hsplit.array", lambda x: np.split(x, [1, 4], 1), self=LONG, indices=[1, 4]),
    case("vsplit.int", lambda x: np.split(x, 2), self=f32(4, 3, 2), sections=2),
    case("dsplit.int", lambda x: np.split(x, 2, 2), self=X, sections=2),
    case(
        "unfold.default",
        lambda x: windows(x, 3, 2, 1),
        self=LONG,
        dimension=1,
        size=3,
        step=2,
    ),
    case(
        "unfold.default",
        lambda x: windows(x, 2, 1, 0),
        label="varying",
        self=LONG,
        dimension=0,
        size=2,
        step=1,
    ),
)
JOINS = (
    case(
        "cat.default",
        lambda x, y: np.concatenate([x, y], 1),
        tensors=[X, f32("n", 2, 4)],
        dim=1,
    ),
    case(
        "cat.default",
        lambda x, y: np.concatenate([x, y], -1).astype(F32),
        label="mixed",
        tensors=[X, i64("n", 3, 2)],
        dim=-1,
    ),
    case(
        "stack.default",
        lambda x, y: np.stack([x, y], -1),
        tensors=[X, f32("n", 3, 4)],
        dim=-1,
    ),
    case("hstack.default", lambda x, y: np.hstack([x, y]), tensors=[X, f32("n", 2, 4)]),
    case(
        "hstack.default",
        lambda x, y: np.hstack([x, y]),
        label="lines",
        tensors=[f32("n"), f32(2)],
    ),
    case(
        "vstack.default", lambda x, y: np.vstack([x, y]), tensors=[f32("n"), f32("n")]
    ),
    case(
        "dstack.default",
        lambda x, y: np.dstack([x, y]),
        tensors=[f32("n", 3), f32("n", 3)],
    ),
    case(
        "column_stack.default",
        lambda x, y: np.column_stack([x, y]),
        tensors=[f32("n"), f32("n", 3)],
    ),
    case(
        "block_diag.default",
        lambda x, y: np.block([[x, np.zeros((2, 1), F32)], [np.zeros((3, 3), F32), y]]),
        tensors=[f32(2, 3), f32(3, 1)],
    ),
    case(
        "meshgrid.indexing",
        lambda x, y: listed(np.meshgrid(x, y, indexing="ij")),
        tensors=[f32("n"), f32(3)],
        indexing="ij",
    ),
    case(
        "meshgrid.indexing",
        lambda x, y: listed(np.meshgrid(x, y, indexing="xy")),
        label="xy",
        tensors=[f32("n"), f32(3)],
        indexing="xy",
    ),
    case(
        "cartesian_prod.default",
        lambda x, y: np.stack([np.repeat(x, 3), np.tile(y, len(x))], 1),
        tensors=[f32("n"), f32(3)],
    ),
)
PADS = (
    case(
        "constant_pad_nd.default",
        lambda x: np.pad(x, [(0, 0), (3, 0), (1, 2)]),
        self=X,
        pad=[1, 2, 3, 0],
    ),
    case(
        "constant_pad_nd.default",
        lambda x: np.pad(x, [(0, 0), (0, 0), (2, 1)], constant_values=1.5),
        label="value",
        self=X,
        pad=[2, 1],
        value=1.5,
    ),
    case(
        "constant_pad_nd.default",
        lambda x: np.pad(x, [(0, 0), (1, 0), (0, 0)])[..., 1:],
        label="negative",
        self=X,
        pad=[-1, 0, 1, 0],
    ),
    case("pad.default", padded("reflect", (1, 2)), self=X, pad=[1, 2], mode="reflect"),
    case(
        "pad.default",
        padded("wrap", (1, 2)),
        label="wrap",
        self=X,
        pad=[1, 2],
        mode="circular",
    ),
    case(
        "pad.default",
        padded("edge", (1, 2)),
        label="edge",
        self=X,
        pad=[1, 2],
        mode="replicate",
    ),
    case(
        "pad.default",
        lambda x: np.pad(x, [(0, 0), (0, 0), (1, 0)], constant_values=-1),
        label="value",
        self=WHOLE,
        pad=[1, 0],
        mode="constant",
        value=-1.0,
    ),
    case("reflection_pad1d.default", padded("reflect", (1, 2)), self=X, padding=[1, 2]),
    case(
        "reflection_pad2d.default",
        padded("reflect", (1, 0), (2, 1)),
        self=f32("n", 2, 3, 4),
        padding=[2, 1, 1, 0],
    ),
    case(
        "reflection_pad3d.default",
        padded("reflect", (1, 1), (1, 0), (2, 1)),
        self=f32("n", 2, 3, 4, 5),
        padding=[2, 1, 1, 0, 1, 1],
    ),
    case("replication_pad1d.default", padded("edge", (1, 2)), self=X, padding=[1, 2]),
    case(
        "replication_pad2d.default",
        padded("edge", (1, 0), (2, 1)),
        self=f32("n", 2, 3, 4),
        padding=[2, 1, 1, 0],
    ),
    case(
        "replication_pad3d.default",
        padded("edge", (1, 1), (1, 0), (2, 1)),
        self=f32("n", 2, 3, 4, 5),
        padding=[2, 1, 1, 0, 1, 1],
    ),
)
REPEATS = (
    case(
        "repeat.default",
        lambda x: np.tile(x, (2, 1, 3, 2)),
        self=X,
        repeats=[2, 1, 3, 2],
    ),
    case("tile.default", lambda x: np.tile(x, (3, 2)), self=X, dims=[3, 2]),
    case(
        "repeat_interleave.self_int",
        lambda x: np.repeat(x, 3, 1),
        self=X,
        repeats=3,
        dim=1,
    ),
    case(
        "repeat_interleave.self_int",
        lambda x: np.repeat(x, 2),
        label="flat",
        self=X,
        repeats=2,
    ),
    case(
        "repeat_interleave.self_Tensor",
        lambda x, r: np.repeat(x, r, 1),
        self=X,
        repeats=fixed("int64", [2, 0, 1]),
        dim=1,
    ),
    case(
        "repeat_interleave.self_Tensor",
        lambda x, r: np.repeat(x, r),
        label="flat",
        self=fixed("int64", [5, 0, 7]),
        repeats=fixed("int64", [2, 0, 1]),
    ),
    case(
        "repeat_interleave.Tensor",
        lambda r: np.repeat(np.arange(3), r),
        repeats=fixed("int64", [2, 0, 1]),
    ),
    case(
        "roll.default",
        lambda x: np.roll(x, (1, -2), (0, 2)),
        self=X,
        shifts=[1, -2],
        dims=[0, 2],
    ),
    case("roll.default", lambda x: np.roll(x, 3), label="flat", self=X, shifts=[3]),
    case("flip.default", lambda x: np.flip(x, (0, 2)), self=X, dims=[0, -1]),
    case("fliplr.default", np.fliplr, self=X),
    case("flipud.default", np.flipud, self=X),
    case("rot90.default", lambda x: np.rot90(x, 1, (0, 1)), self=X),
    case(
        "rot90.default",
        lambda x: np.rot90(x, 3, (1, 2)),
        label="3",
        self=X,
        k=3,
        dims=[1, 2],
    ),
    case(
        "rot90.default",
        lambda x: np.rot90(x, 2, (0, 2)),
        label="2",
        self=X,
        k=2,
        dims=[0, 2],
    ),
    case(
        "fft_fftshift.default",
        lambda x: np.fft.fftshift(x, (1, 2)),
        self=f32("n", 3, 5),
        dim=[1, 2],
    ),
)
DIAGONALS = (
    case(
        "diagonal.default",
        lambda x: x.diagonal(1, 1, 2),
        self=X,
        offset=1,
        dim1=1,
        dim2=2,
    ),
    case(
        "diagonal.default",
        lambda x: x.diagonal(-1, 0, 2),
        label="varying",
        self=X,
        offset=-1,
        dim1=0,
        dim2=-1,
    ),
    case("diag.default", np.diag, self=f32(3, 4)),
    case(
        "diag.default",
        lambda x: np.diag(x, -1),
        label="line",
        self=f32("n"),
        diagonal=-1,
    ),
    case(
        "diag_embed.default",
        lambda x: np.stack([np.stack([np.diag(r, 1) for r in m]) for m in x]),
        self=X,
        offset=1,
    ),
    case(
        "diag_embed.default",
        lambda x: np.stack([np.diag(r) for r in x], 2),
        label="front",
        self=f32("n", 3),
        dim1=0,
        dim2=1,
    ),
    case("diagflat.default", lambda x: np.diagflat(x), self=f32(2, 3)),
    case("trace.default", np.trace, self=f32(3, 4)),
    case("trace.default", np.trace, label="int", self=i64(4, 3)),
    case("tril.default", lambda x: np.tril(x, 1), self=X, diagonal=1),
    case("triu.default", lambda x: np.triu(x, -1), self=WHOLE, diagonal=-1),
    case("triu.default", np.triu, label="bool", self=bools("n", 3, 4)),
)
CASES: tuple[Case, ...] = (*SLICES, *JOINS, *PADS, *REPEATS, *DIAGONALS)
