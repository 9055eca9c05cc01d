"""Changes of dtype, and copies."""

from __future__ import annotations

import numpy as np

from tests.importer.aten.case import (
    Case,
    case,
    f32,
    f64,
    i64,
)
from tests.importer.aten.inputs import WHOLE, X

CASES: tuple[Case, ...] = (
    *(
        case(
            "_to_copy.default",
            lambda x, d=d: x.astype(d),
            label=d,
            self=x,
            dtype=np.dtype(d),
        )
        for d, x in (("int64", X), ("float64", X), ("float16", X), ("float32", WHOLE))
    ),
    case(
        "_to_copy.default",
        lambda x: x != 0,
        label="bool",
        self=i64("n", 3, low=0, high=2),
        dtype=np.dtype(bool),
    ),
    case("to.dtype", lambda x: x.astype(np.int32), self=X, dtype=np.dtype("int32")),
    case("to.dtype", lambda x: x, label="same", self=X, dtype=np.dtype("float32")),
    case("to.other", lambda x, y: x.astype(y.dtype), self=X, other=f64(3)),
    case("type_as.default", lambda x, y: x.astype(y.dtype), self=X, other=i64(3)),
    case("clone.default", lambda x: x, self=X),
    case("contiguous.default", lambda x: x, self=X),
    case("alias.default", lambda x: x, self=X),
    case("detach.default", lambda x: x, self=X),
    case("lift_fresh_copy.default", lambda x: x, self=X),
    case("fill.Scalar", lambda x: np.full_like(x, 2.5), self=X, value=2.5),
    case("fill.Tensor", lambda x, v: np.full_like(x, v), self=X, value=f32()),
    case(
        "copy.default",
        lambda x, y: np.broadcast_to(y, x.shape).astype(x.dtype),
        self=X,
        src=i64(3, 1),
    ),
)
