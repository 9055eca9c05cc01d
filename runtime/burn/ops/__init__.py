"""Every operation on tensors, by family.

A name here is a primitive (a kernel with its gradient) or a function of primitives.
"""

from burn.ops.creation import (
    arange,
    eye,
    full,
    full_like,
    ones,
    ones_like,
    zeros,
    zeros_like,
)
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
from burn.ops.indexing import (
    compress,
    depth_to_space,
    gather_elements,
    gather_nd,
    getitem,
    nonzero,
    one_hot,
    one_hot_mask,
    slice,
    space_to_depth,
    take,
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
from burn.ops.ordering import (
    argmax,
    argmin,
    argsort,
    cumprod,
    cumsum,
    sort,
    topk,
)
from burn.ops.padding import (
    flip,
    pad,
    reverse_sequence,
    roll,
    stack,
    tile,
    trilu,
)
from burn.ops.random import bernoulli, dropout, normal, uniform
from burn.ops.reduction import (
    all,
    any,
    max,
    mean,
    min,
    prod,
    reduce_l1,
    reduce_l2,
    sum,
    sum_to,
    var,
)
from burn.ops.resize import resize
from burn.ops.scatter import scatter_elements, scatter_nd
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
