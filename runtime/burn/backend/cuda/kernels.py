"""The kernels of CUDA devices, registered on their primitives by being imported."""

from burn.backend.cuda import (
    activations as activations,
    batch_norms as batch_norms,
    cached_attention as cached_attention,
    convolution as convolution,
    depthwise as depthwise,
    elements as elements,
    elementwise as elementwise,
    epilogues as epilogues,
    few_rows as few_rows,
    fused_attention as fused_attention,
    fused_convolution as fused_convolution,
    fused_products as fused_products,
    pooling as pooling,
    pooling_grad as pooling_grad,
    positions as positions,
    products as products,
    rows as rows,
    slices as slices,
    views as views,
)
