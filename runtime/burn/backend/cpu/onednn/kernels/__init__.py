"""oneDNN kernels, registered on primitives at import."""

from burn.backend.cpu.onednn.kernels import (
    casting as casting,
    chains as chains,
    columns as columns,
    einsum as einsum,
    elementwise as elementwise,
    matmul as matmul,
    pointwise as pointwise,
    pointwise_grad as pointwise_grad,
    pooling as pooling,
    pooling_grad as pooling_grad,
    resize as resize,
    rows as rows,
)
from burn.backend.cpu.onednn.kernels.convolution import convolution as convolution
from burn.backend.cpu.onednn.kernels.norms import (
    group_norm as group_norm,
    normalization as normalization,
    normalization_grad as normalization_grad,
)
from burn.backend.cpu.onednn.kernels.quantization import (
    quantized_layers as quantized_layers,
    rounding as rounding,
)
from burn.backend.cpu.onednn.kernels.rnn import recurrent as recurrent
