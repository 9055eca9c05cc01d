"""Views: reshapes and permutations."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.importer.aten.case import Case, N, bools, case, f32, i64
from tests.importer.aten.inputs import X

LINE, IMAGE = f32("n"), f32("n", 8, 3, 4)


def turned(*order: int) -> Any:
    """Return a function that permutes axes."""
    return lambda x: np.transpose(x, order)


def shuffled(x: Any) -> Any:
    n, c, h, w = x.shape
    parts = x.reshape(n, c // 4, 2, 2, h, w).transpose(0, 1, 4, 2, 5, 3)
    return parts.reshape(n, c // 4, h * 2, w * 2)


def unshuffled(x: Any) -> Any:
    n, c, h, w = x.shape
    parts = x.reshape(n, c, h // 2, 2, w // 2, 2).transpose(0, 1, 3, 5, 2, 4)
    return parts.reshape(n, c * 4, h // 2, w // 2)


def mixed(x: Any) -> Any:
    n, c, h, w = x.shape
    return x.reshape(n, 2, c // 2, h, w).swapaxes(1, 2).reshape(x.shape)


CASES: tuple[Case, ...] = (
    case("view.default", lambda x: x.reshape(-1, 12), self=X, size=[-1, 12]),
    case(
        "view.default",
        lambda x: x.reshape(-1, 2, 6),
        label="sized",
        self=X,
        size=[N, 2, 6],
    ),
    case("reshape.default", lambda x: x.reshape(4, -1), self=X, shape=[4, -1]),
    case("_unsafe_view.default", lambda x: x.reshape(-1, 12), self=X, size=[N, 12]),
    case(
        "view_as.default", lambda x, y: x.reshape(y.shape), self=X, other=f32("n", 2, 6)
    ),
    case(
        "reshape_as.default",
        lambda x, y: x.reshape(y.shape),
        self=X,
        other=f32("n", 2, 6),
    ),
    case("view.dtype", lambda x: x.view(np.int32), self=X, dtype=np.dtype("int32")),
    case("flatten.using_ints", lambda x: x.reshape(len(x), -1), self=X, start_dim=1),
    case(
        "flatten.using_ints",
        lambda x: x.reshape(-1, 4),
        label="first",
        self=X,
        end_dim=-2,
    ),
    case(
        "flatten.using_ints", lambda x: x, label="one", self=X, start_dim=1, end_dim=1
    ),
    case("ravel.default", np.ravel, self=X),
    case(
        "unflatten.int", lambda x: x.reshape(-1, 3, 2, 2), self=X, dim=-1, sizes=[2, -1]
    ),
    case("permute.default", turned(2, 0, 1), self=X, dims=[2, 0, -2]),
    case("transpose.int", turned(0, 2, 1), self=X, dim0=1, dim1=-1),
    case("transpose.int", turned(2, 1, 0), label="outer", self=X, dim0=-1, dim1=0),
    case("swapaxes.default", turned(1, 0, 2), self=X, axis0=0, axis1=1),
    case("swapdims.default", turned(1, 0, 2), self=X, dim0=1, dim1=0),
    case("t.default", np.transpose, self=f32("n", 3)),
    case("t.default", np.transpose, label="line", self=LINE),
    case("numpy_T.default", np.transpose, self=X),
    case("mT.default", turned(0, 2, 1), self=X),
    case("mH.default", turned(0, 2, 1), self=X),
    case("adjoint.default", turned(0, 2, 1), self=X),
    case("movedim.int", turned(1, 2, 0), self=X, source=0, destination=-1),
    case("movedim.intlist", turned(2, 1, 0), self=X, source=[0, 2], destination=[2, 0]),
    case("moveaxis.int", turned(2, 0, 1), self=X, source=2, destination=0),
    case("unsqueeze.default", lambda x: x[:, :, None], self=X, dim=-2),
    case("squeeze.dim", lambda x: x[:, 0], self=f32("n", 1, 4), dim=-2),
    case("squeeze.dim", lambda x: x, label="kept", self=X, dim=1),
    case(
        "squeeze.dims", lambda x: x[:, 0, :, 0], self=f32("n", 1, 4, 1), dim=[1, 2, -1]
    ),
    case("squeeze.default", lambda x: x[:, 0, :, 0], self=f32("n", 1, 4, 1)),
    case("atleast_1d.default", np.atleast_1d, self=f32()),
    case("atleast_2d.default", np.atleast_2d, self=LINE),
    case("atleast_3d.default", np.atleast_3d, self=f32("n", 3)),
    case("atleast_3d.default", np.atleast_3d, label="line", self=LINE),
    case(
        "expand.default",
        lambda x: np.broadcast_to(x, (3, len(x), 2, 4)),
        self=f32("n", 1, 4),
        size=[3, -1, 2, 4],
    ),
    case(
        "expand.default",
        lambda x: np.broadcast_to(x, (len(x), 3, 4)),
        label="sized",
        self=f32("n", 1, 4),
        size=[N, 3, 4],
    ),
    case(
        "broadcast_to.default",
        lambda x: np.broadcast_to(x, (2, 3, 4)),
        self=f32(3, 1),
        size=[2, 3, 4],
    ),
    case(
        "expand_as.default",
        lambda x, y: np.broadcast_to(x, y.shape),
        self=f32(3, 1),
        other=X,
    ),
    case(
        "broadcast_tensors.default",
        lambda x, y: list(np.broadcast_arrays(x, y)),
        tensors=[f32(3, 1), f32("n", 1, 4)],
    ),
    case("pixel_shuffle.default", shuffled, self=IMAGE, upscale_factor=2),
    case(
        "pixel_unshuffle.default",
        unshuffled,
        self=f32("n", 2, 4, 6),
        downscale_factor=2,
    ),
    case("channel_shuffle.default", mixed, self=IMAGE, groups=2),
    case("native_channel_shuffle.default", mixed, self=IMAGE, groups=2),
    case("clone.default", lambda x: x, label="bool", self=bools("n", 3)),
    case(
        "view.default",
        lambda x: x.reshape(3, 4),
        label="fixed",
        self=i64(2, 6),
        size=[3, 4],
    ),
)
