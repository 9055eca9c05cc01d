"""Every operation on tensors, by family.

A name here is a primitive (a kernel with its gradient) or a function of primitives.
"""

from burn.ops.elementwise import (
    abs,
    add,
    cast,
    ceil,
    cos,
    div,
    erf,
    exp,
    floor,
    floor_div,
    fmod,
    log,
    maximum,
    minimum,
    mul,
    neg,
    pow,
    reciprocal,
    remainder,
    round,
    sign,
    sin,
    sqrt,
    sub,
    trunc,
    trunc_div,
)
from burn.ops.logic import (
    equal,
    greater,
    greater_equal,
    isnan,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    not_equal,
    where,
)
from burn.ops.matmul import einsum, linear, matmul
from burn.ops.reduction import max, mean, min, prod, sum, sum_to
from burn.ops.shape import (
    concat,
    expand,
    flatten,
    permute,
    reshape,
    shape,
    size,
    split,
    squeeze,
    transpose,
    unsqueeze,
)

__all__ = [name for name in dir() if not name.startswith("_")]
