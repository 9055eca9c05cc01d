"""Every operation on tensors, by family.

A name here is a primitive (a kernel with its gradient) or a function of primitives.
"""

from burn.ops.activation import (
    celu as celu,
)
from burn.ops.activation import (
    clip as clip,
)
from burn.ops.activation import (
    elu as elu,
)
from burn.ops.activation import (
    gelu as gelu,
)
from burn.ops.activation import (
    gelu_grad as gelu_grad,
)
from burn.ops.activation import (
    hard_sigmoid as hard_sigmoid,
)
from burn.ops.activation import (
    hard_swish as hard_swish,
)
from burn.ops.activation import (
    leaky_relu as leaky_relu,
)
from burn.ops.activation import (
    mish as mish,
)
from burn.ops.activation import (
    prelu as prelu,
)
from burn.ops.activation import (
    relu as relu,
)
from burn.ops.activation import (
    selu as selu,
)
from burn.ops.activation import (
    shrink as shrink,
)
from burn.ops.activation import (
    sigmoid as sigmoid,
)
from burn.ops.activation import (
    silu as silu,
)
from burn.ops.activation import (
    softplus as softplus,
)
from burn.ops.activation import (
    softsign as softsign,
)
from burn.ops.activation import (
    tanh as tanh,
)
from burn.ops.activation import (
    thresholded_relu as thresholded_relu,
)
from burn.ops.conv import (
    conv as conv,
)
from burn.ops.conv import (
    conv_transpose as conv_transpose,
)
from burn.ops.conv import (
    conv_weight_grad as conv_weight_grad,
)
from burn.ops.elementwise import (
    abs as abs,
)
from burn.ops.elementwise import (
    add as add,
)
from burn.ops.elementwise import (
    cast as cast,
)
from burn.ops.elementwise import (
    ceil as ceil,
)
from burn.ops.elementwise import (
    cos as cos,
)
from burn.ops.elementwise import (
    div as div,
)
from burn.ops.elementwise import (
    erf as erf,
)
from burn.ops.elementwise import (
    exp as exp,
)
from burn.ops.elementwise import (
    floor as floor,
)
from burn.ops.elementwise import (
    floor_div as floor_div,
)
from burn.ops.elementwise import (
    fmod as fmod,
)
from burn.ops.elementwise import (
    log as log,
)
from burn.ops.elementwise import (
    maximum as maximum,
)
from burn.ops.elementwise import (
    minimum as minimum,
)
from burn.ops.elementwise import (
    mul as mul,
)
from burn.ops.elementwise import (
    neg as neg,
)
from burn.ops.elementwise import (
    pow as pow,
)
from burn.ops.elementwise import (
    reciprocal as reciprocal,
)
from burn.ops.elementwise import (
    remainder as remainder,
)
from burn.ops.elementwise import (
    round as round,
)
from burn.ops.elementwise import (
    sign as sign,
)
from burn.ops.elementwise import (
    sin as sin,
)
from burn.ops.elementwise import (
    sqrt as sqrt,
)
from burn.ops.elementwise import (
    sub as sub,
)
from burn.ops.elementwise import (
    trunc as trunc,
)
from burn.ops.elementwise import (
    trunc_div as trunc_div,
)
from burn.ops.layer_norm import (
    layer_norm as layer_norm,
)
from burn.ops.layer_norm import (
    layer_norm_grad as layer_norm_grad,
)
from burn.ops.layer_norm import (
    rms_norm as rms_norm,
)
from burn.ops.layer_norm import (
    rms_norm_grad as rms_norm_grad,
)
from burn.ops.logic import (
    equal as equal,
)
from burn.ops.logic import (
    greater as greater,
)
from burn.ops.logic import (
    greater_equal as greater_equal,
)
from burn.ops.logic import (
    isnan as isnan,
)
from burn.ops.logic import (
    less as less,
)
from burn.ops.logic import (
    less_equal as less_equal,
)
from burn.ops.logic import (
    logical_and as logical_and,
)
from burn.ops.logic import (
    logical_not as logical_not,
)
from burn.ops.logic import (
    logical_or as logical_or,
)
from burn.ops.logic import (
    logical_xor as logical_xor,
)
from burn.ops.logic import (
    not_equal as not_equal,
)
from burn.ops.logic import (
    where as where,
)
from burn.ops.norm import (
    batch_norm as batch_norm,
)
from burn.ops.norm import (
    batch_norm_train as batch_norm_train,
)
from burn.ops.norm import (
    group_norm as group_norm,
)
from burn.ops.norm import (
    instance_norm as instance_norm,
)
from burn.ops.norm import (
    lrn as lrn,
)
from burn.ops.pool import (
    adaptive_avg_pool as adaptive_avg_pool,
)
from burn.ops.pool import (
    adaptive_avg_spread as adaptive_avg_spread,
)
from burn.ops.pool import (
    avg_pool as avg_pool,
)
from burn.ops.pool import (
    lp_pool as lp_pool,
)
from burn.ops.pool import (
    max_pool as max_pool,
)
from burn.ops.pool import (
    max_pool_with_indices as max_pool_with_indices,
)
from burn.ops.pool import (
    window_argmax as window_argmax,
)
from burn.ops.pool import (
    window_gather as window_gather,
)
from burn.ops.pool import (
    window_scatter as window_scatter,
)
from burn.ops.pool import (
    window_spread as window_spread,
)
from burn.ops.pool import (
    window_sum as window_sum,
)
from burn.ops.reduction import max as max
from burn.ops.reduction import mean as mean
from burn.ops.reduction import min as min
from burn.ops.reduction import prod as prod
from burn.ops.reduction import sum as sum
from burn.ops.reduction import sum_to as sum_to
from burn.ops.shape import (
    concat as concat,
)
from burn.ops.shape import (
    expand as expand,
)
from burn.ops.shape import (
    flatten as flatten,
)
from burn.ops.shape import (
    permute as permute,
)
from burn.ops.shape import (
    reshape as reshape,
)
from burn.ops.shape import (
    shape as shape,
)
from burn.ops.shape import (
    size as size,
)
from burn.ops.shape import (
    split as split,
)
from burn.ops.shape import (
    squeeze as squeeze,
)
from burn.ops.shape import (
    transpose as transpose,
)
from burn.ops.shape import (
    unsqueeze as unsqueeze,
)
from burn.ops.softmax import (
    log_softmax as log_softmax,
)
from burn.ops.softmax import (
    logsumexp as logsumexp,
)
from burn.ops.softmax import (
    softmax as softmax,
)
