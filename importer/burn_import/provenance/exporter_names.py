"""Classification of value names: chosen by an author or made up by an exporter.

An exporter names a value after its operator, with a counter: ``view_3``,
``split_split_0``, ``/encoder/Add_2_output_0``. Such a name adds nothing to the
expression. The operators are a closed table: those of ATen, TensorFlow and PaddlePaddle
are listed here, those of ONNX are the declared ones.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache

from burn_import.tracing.identifiers import identifier, snake
from burn_ir.op import operators

#: Operators of ATen, as named in traced programs, without variants.
_ATEN = """
abs absolute acos acosh adaptive_avg_pool adaptive_max_pool add addbmm addcdiv addcmul
addmm addmv addr affine_grid_generator alias all alpha_dropout amax amin aminmax any
arange arccos arccosh arcsin arcsinh arctan arctanh argmax argmin argsort argwhere
as_strided as_strided_scatter asin asinh assert_scalar assert_tensor_metadata atan
atanh avg_pool baddbmm batch_norm bernoulli bilinear bincount bitwise_and
bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor bmm
broadcast_tensors broadcast_to bucketize cat cdist ceil celu channel_shuffle chunk
clamp clamp_max clamp_min clip clone col2im column_stack complex concat concatenate
cond conj constant_pad_nd contiguous conv conv_transpose convert_element_type
convolution copy copysign cos cosh cosine_similarity count_nonzero cross cummax cummin
cumprod cumsum deg2rad det detach diag diag_embed diagonal diff dim div divide dot
dropout einsum elu embedding embedding_bag empty empty_like empty_permuted
empty_strided eq equal erf erfc erfinv exp expand expand_as expm exponential eye
feature_dropout fill flatten flip float_power floor floor_divide fmax fmin fmod frac
full full_like gather ge gelu getitem glu grid_sample grid_sampler group_norm gru gt
hardshrink hardsigmoid hardswish hardtanh heaviside hypot index index_add index_copy
index_fill index_put index_reduce index_select inner instance_norm inverse isclose
isfinite isin isinf isnan item kthvalue layer_norm le leaky_relu lerp less less_equal
lgamma lift_fresh lift_fresh_copy linalg_norm linalg_vector_norm linear linspace log
log_sigmoid log_softmax logaddexp logcumsumexp logical_and logical_not logical_or
logical_xor logsumexp lstm lt masked_fill masked_scatter masked_select matmul max
max_pool max_pool_with_indices max_unpool maximum mean median meshgrid min minimum
mish mm movedim mul multinomial multiply mv nan_to_num narrow native_dropout
native_group_norm native_layer_norm native_batch_norm native_batch_norm_legit
native_batch_norm_legit_no_training ne neg negative new_empty new_full new_ones
new_zeros nonzero norm normal not_equal numel one_hot ones ones_like outer pad
pdist permute pixel_shuffle pixel_unshuffle polar pow prelu prod rad2deg rand
rand_like randint randn randn_like randperm range reciprocal reflection_pad relu
remainder renorm repeat repeat_interleave replication_pad reshape reshape_as resize
rms_norm rnn_relu rnn_tanh roll rot90 round rrelu rsqrt rsub scalar_tensor
scaled_dot_product_attention scan scatter scatter_add scatter_reduce searchsorted
select select_scatter selu sgn shape sigmoid sign signbit silu sin sinc sinh size
slice slice_scatter softmax softplus softshrink sort split split_with_sizes sqrt
square squeeze stack std std_mean stft stride sub subtract sum swapaxes sym_float
sym_int sym_ite sym_max sym_min sym_not sym_numel sym_size sym_stride sym_sqrt t take
take_along_dim tan tanh tensor_split tensordot tile to to_copy topk trace transpose
tril triu true_divide trunc type_as unbind unflatten unfold uniform unique
unique_consecutive unique_dim unsafe_chunk unsafe_index unsafe_masked_index
unsafe_split unsafe_split_with_sizes unsafe_view unsqueeze upsample_bicubic
upsample_bilinear upsample_linear upsample_nearest upsample_nearest_exact
upsample_trilinear var var_mean view view_as vstack where while_loop xlogy zeros
zeros_like
"""
#: Operators of TensorFlow whose name differs from ONNX's.
_TENSORFLOW = """
add_v2 arg_max arg_min avg_pool batch_mat_mul batch_mat_mul_v2 batch_to_space_nd
bias_add broadcast_to concat_v2 const conv_2_d conv2_d depthwise_conv2d_native
depthwise expand_dims fill fused_batch_norm fused_batch_norm_v3 gather_v2 leaky_relu
mat_mul mirror_pad pack pad_v2 partitioned_call placeholder read_variable_op real_div
resize_bilinear resize_nearest_neighbor reverse_v2 rsqrt select_v2 space_to_batch_nd
split_v squared_difference stateful_partitioned_call strided_slice
tensor_list_get_item tensor_list_set_item tensor_list_stack top_k_v2 truediv unpack
while_placeholder
"""
#: Operators of PaddlePaddle whose name differs from ONNX's and ATen's.
_PADDLE = """
assign bilinear_interp bilinear_interp_v2 conv2d_transpose depthwise_conv2d
depthwise_conv2d_transpose elementwise_add elementwise_div elementwise_mul
elementwise_pow elementwise_sub fill_constant fill_constant_batch_size_like
flatten_contiguous_range hard_shrink lookup_table lookup_table_v2 matmul_v2
nearest_interp nearest_interp_v2 p_norm pool2d pool3d reduce_max reduce_mean reduce_min
reduce_prod reduce_sum relu6 reshape2 scale squeeze2 swish top_k_v2 transpose2
unsqueeze2
"""
#: Names that paddle2onnx gives to computed values.
_FROM_PADDLE = re.compile(r"p2o\.|(helper|auto)\.[a-z]+\.\d+$")
#: Authors' usual names of the main stream of data.
_ANYTHING = frozenset(
    {"a", "b", "x", "y", "z", "out", "outs", "output", "outputs", "input", "inputs"}
    | {"in", "hidden_states", "hidden_state", "hidden", "res", "result", "results"}
    | {"ret", "tmp", "temp", "tensor", "data", "feature", "features", "keras_tensor"}
)
_MADE_UP = """
node val value_info var variable graph_output graph_input identity constant initializer
onnx output input tensor tmp
"""
#: Suffixes of exporters for one of several results, and of ATen for variants.
_VARIANTS = frozenset(
    {"split", "output", "default", "tensor", "scalar", "int", "float", "dim", "self"}
    | {"mode", "out", "vec", "values", "indices", "names", "complex", "bool", "other"}
    | {"correction", "start", "step", "cast", "raw"}
)
_LONGEST = 24
_COUNT = re.compile(r"_?\d+d?$")

#: What onnxruntime's quantizer appends to the name of the value that it rounds.
_FROM_QUANTIZER = re.compile(r"(_(Quantize|Dequantize)Linear_(In|Out)put|_quantized)$")


def authored(name: str) -> str:
    """Return an identifier for a value named by an author, else "".

    Counters are dropped: ``key_3`` is ``key``. Generic names such as ``x`` and
    ``hidden_states`` give "".
    """
    word = custom_identifier(name)
    return "" if is_stream(word) else word


def is_stream(word: str) -> bool:
    """Return whether a word is a generic name of the main stream of data."""
    return word.rstrip("_") in _ANYTHING or re.fullmatch(r"[a-z]\d+", word) is not None


def custom_identifier(name: str) -> str:
    """Return an identifier for a value whose name is not an exporter's, else ""."""
    if is_computed_by_paddle(name):
        return ""
    leaf = name.rpartition("/")[2].rpartition("::")[2].partition(":")[0]
    leaf = _FROM_QUANTIZER.sub("", leaf.partition(".")[0])
    if not leaf or leaf[0].isdigit() or re.search(r"\d{3}", leaf):
        return ""
    word = identifier(re.sub(r"_\d+$", "", snake(leaf)))
    if len(word) > _LONGEST or re.fullmatch(r"[a-z]{0,2}\d+_?", word):
        return ""
    return "" if is_leftover(word) else word


def is_computed_by_paddle(name: str) -> bool:
    """Return whether a name is one of paddle2onnx for a computed value."""
    word, _, number = name.rpartition(".")  # `Transpose.3` in older versions
    is_numbered = number.isdigit() and ("", word) in operators()
    return is_numbered or _FROM_PADDLE.match(name) is not None


@lru_cache(maxsize=1 << 14)
def is_leftover(word: str) -> bool:
    """Return whether an identifier is an operator's name, with variants or counters."""
    words = _operators()
    parts = [part for part in word.lower().split("_") if part]
    for end in range(len(parts), 0, -1):
        whole = "_".join(part for part in parts[:end] if not part.isdigit())
        stem = _COUNT.sub("", whole)
        if not stem or whole in words or stem in words:
            return all(p.isdigit() or p in _VARIANTS for p in parts[end:])
        if not (parts[end - 1].isdigit() or parts[end - 1] in _VARIANTS):
            return False
    return True


@cache
def _operators() -> frozenset[str]:
    """Return all operators in snake case, and other generated names.

    Operators registered by others are left out: names must not depend on other
    loaded.
    """
    ours = ("", "ai.onnx.ml", "com.microsoft", "burn")
    onnx = {snake(name).rstrip("_") for domain, name in operators() if domain in ours}
    joined = {word.replace("_", "") for word in onnx}
    listed = f"{_ATEN} {_TENSORFLOW} {_PADDLE} {_MADE_UP}".split()
    return frozenset({*listed, *onnx, *joined})
