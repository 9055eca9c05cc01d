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
from burn.ops.bits import (
    bitcast as bitcast,
)
from burn.ops.bits import (
    bitwise_and as bitwise_and,
)
from burn.ops.bits import (
    bitwise_left_shift as bitwise_left_shift,
)
from burn.ops.bits import (
    bitwise_not as bitwise_not,
)
from burn.ops.bits import (
    bitwise_or as bitwise_or,
)
from burn.ops.bits import (
    bitwise_right_shift as bitwise_right_shift,
)
from burn.ops.bits import (
    bitwise_xor as bitwise_xor,
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
from burn.ops.creation import (
    arange as arange,
)
from burn.ops.creation import (
    array as array,
)
from burn.ops.creation import (
    eye as eye,
)
from burn.ops.creation import (
    full as full,
)
from burn.ops.creation import (
    full_like as full_like,
)
from burn.ops.creation import (
    ones as ones,
)
from burn.ops.creation import (
    ones_like as ones_like,
)
from burn.ops.creation import (
    zeros as zeros,
)
from burn.ops.creation import (
    zeros_like as zeros_like,
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
from burn.ops.indexing import (
    compress as compress,
)
from burn.ops.indexing import (
    depth_to_space as depth_to_space,
)
from burn.ops.indexing import (
    gather_elements as gather_elements,
)
from burn.ops.indexing import (
    gather_nd as gather_nd,
)
from burn.ops.indexing import (
    getitem as getitem,
)
from burn.ops.indexing import (
    nonzero as nonzero,
)
from burn.ops.indexing import (
    one_hot as one_hot,
)
from burn.ops.indexing import (
    one_hot_mask as one_hot_mask,
)
from burn.ops.indexing import (
    slice as slice,
)
from burn.ops.indexing import (
    space_to_depth as space_to_depth,
)
from burn.ops.indexing import (
    take as take,
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
    isinf as isinf,
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
from burn.ops.matmul import (
    einsum as einsum,
)
from burn.ops.matmul import (
    linear as linear,
)
from burn.ops.matmul import (
    matmul as matmul,
)
from burn.ops.norm import (
    batch_norm as batch_norm,
)
from burn.ops.norm import (
    batch_norm_grad as batch_norm_grad,
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
from burn.ops.ordering import (
    argmax as argmax,
)
from burn.ops.ordering import (
    argmin as argmin,
)
from burn.ops.ordering import (
    argsort as argsort,
)
from burn.ops.ordering import (
    cumprod as cumprod,
)
from burn.ops.ordering import (
    cumsum as cumsum,
)
from burn.ops.ordering import (
    sort as sort,
)
from burn.ops.ordering import (
    topk as topk,
)
from burn.ops.padding import (
    flip as flip,
)
from burn.ops.padding import (
    pad as pad,
)
from burn.ops.padding import (
    reverse_sequence as reverse_sequence,
)
from burn.ops.padding import (
    roll as roll,
)
from burn.ops.padding import (
    stack as stack,
)
from burn.ops.padding import (
    tile as tile,
)
from burn.ops.padding import (
    trilu as trilu,
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
from burn.ops.random import (
    bernoulli as bernoulli,
)
from burn.ops.random import (
    dropout as dropout,
)
from burn.ops.random import (
    normal as normal,
)
from burn.ops.random import (
    uniform as uniform,
)
from burn.ops.reduction import (
    all as all,
)
from burn.ops.reduction import (
    any as any,
)
from burn.ops.reduction import (
    max as max,
)
from burn.ops.reduction import (
    mean as mean,
)
from burn.ops.reduction import (
    min as min,
)
from burn.ops.reduction import (
    prod as prod,
)
from burn.ops.reduction import (
    reduce_l1 as reduce_l1,
)
from burn.ops.reduction import (
    reduce_l2 as reduce_l2,
)
from burn.ops.reduction import (
    sum as sum,
)
from burn.ops.reduction import (
    sum_to as sum_to,
)
from burn.ops.reduction import (
    var as var,
)
from burn.ops.resize import (
    resize as resize,
)
from burn.ops.rnn import (
    gru as gru,
)
from burn.ops.rnn import (
    lstm as lstm,
)
from burn.ops.rnn import (
    rnn as rnn,
)
from burn.ops.scatter import (
    scatter_elements as scatter_elements,
)
from burn.ops.scatter import (
    scatter_nd as scatter_nd,
)
from burn.ops.shape import (
    chunk as chunk,
)
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
from burn.ops.trigonometry import (
    acos as acos,
)
from burn.ops.trigonometry import (
    acosh as acosh,
)
from burn.ops.trigonometry import (
    asin as asin,
)
from burn.ops.trigonometry import (
    asinh as asinh,
)
from burn.ops.trigonometry import (
    atan as atan,
)
from burn.ops.trigonometry import (
    atanh as atanh,
)
from burn.ops.trigonometry import (
    cos as cos,
)
from burn.ops.trigonometry import (
    cosh as cosh,
)
from burn.ops.trigonometry import (
    sin as sin,
)
from burn.ops.trigonometry import (
    sinh as sinh,
)
from burn.ops.trigonometry import (
    tan as tan,
)
