"""The kernels of oneDNN, registered on their primitives by being imported."""

from burn.backend.onednn import (
    casting as casting,
    convolution as convolution,
    matmul as matmul,
    normalization as normalization,
    pointwise as pointwise,
    pointwise_grad as pointwise_grad,
    pooling as pooling,
    pooling_grad as pooling_grad,
    quantized_layers as quantized_layers,
    rounding as rounding,
)
