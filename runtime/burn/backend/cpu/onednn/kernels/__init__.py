"""The kernels of oneDNN, registered on their primitives by being imported."""

from burn.backend.cpu.onednn.kernels import (
    casting as casting,
    chains as chains,
    columns as columns,
    einsum as einsum,
    elementwise as elementwise,
    group_norm as group_norm,
    matmul as matmul,
    normalization as normalization,
    normalization_grad as normalization_grad,
    pointwise as pointwise,
    pointwise_grad as pointwise_grad,
    pooling as pooling,
    pooling_grad as pooling_grad,
    quantized_layers as quantized_layers,
    recurrent as recurrent,
    resize as resize,
    rounding as rounding,
    rows as rows,
)
from burn.backend.cpu.onednn.kernels.convolution import convolution as convolution
