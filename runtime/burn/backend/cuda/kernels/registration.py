"""The CUDA kernels, registered on primitives at import."""

from burn.backend.cuda.kernels import (
    batch_norms as batch_norms,
    column_sums as column_sums,
    pooling as pooling,
    pooling_grad as pooling_grad,
    roll as roll,
    slices as slices,
    trees as trees,
    views as views,
)
from burn.backend.cuda.kernels.attention import (
    cached_attention as cached_attention,
    fused_attention as fused_attention,
)
from burn.backend.cuda.kernels.convolution import (
    convolution as convolution,
    depthwise as depthwise,
    fused_convolution as fused_convolution,
)
from burn.backend.cuda.kernels.elementwise import (
    activations as activations,
    elements as elements,
    elementwise as elementwise,
    epilogues as epilogues,
    finite as finite,
    many as many,
)
from burn.backend.cuda.kernels.products import (
    einsum as einsum,
    fused_products as fused_products,
    products as products,
    row_linear as row_linear,
)
from burn.backend.cuda.kernels.rows import (
    argmax as argmax,
    gradients as gradients,
    normalization as normalization,
)
