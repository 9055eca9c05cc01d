"""oneDNN kernels, whose modules register them on primitives.

Each is imported by the first call of one of its kernels.
"""

from burn.backend.cpu.device import Cpu
from burn.primitive import kernels_later

#: The names of primitives by the module with their kernels.
KERNELS = {
    f"{__name__}.{module}": tuple(names.split())
    for module, names in {
        "attention": "scaled_attention",
        "casting": "cast",
        "chains": "chained",
        "columns": "sum sum_to",
        "convolution.convolution": (
            "conv conv_grads conv_then conv_transpose conv_weight_grad"
        ),
        "convolution.expansion": "expanded_depthwise",
        "einsum": "einsum",
        "elementwise": "add clip div mul relu sub",
        "matmul": "linear linear_then matmul matmul_then",
        "norms.group_norm": "group_norm group_norm_then",
        "norms.normalization": (
            "batch_norm batch_norm_then layer_norm log_softmax masked_softmax softmax"
        ),
        "norms.normalization_grad": (
            "batch_norm_grad batch_norm_train layer_norm_grad softmax_grad"
        ),
        "pointwise": (
            "celu elu gelu hard_sigmoid hard_swish leaky_relu mish prelu selu sigmoid "
            "silu softplus tanh"
        ),
        "pointwise_grad": "gelu_grad relu_grad",
        "pooling": "avg_pool max_pool mean",
        "pooling_grad": "max_pool_with_places window_argmax window_scatter",
        "quantization.quantized_layers": "conv_of_integers linear_of_integers",
        "quantization.ranges": "quantization_range quantize",
        "quantization.rounding": "from_integers to_integers",
        "resize": "resize",
        "rnn.recurrent": "gru gru_grad lstm lstm_grad rnn rnn_grad",
        "rows": "getitem_grad rows_added take_grad update_slice",
    }.items()
}

kernels_later(Cpu, KERNELS)
