"""The kernels of CUDA devices, registered on their primitives by being imported."""

from burn.backend.cuda import (
    activations as activations,
    convolution as convolution,
    elementwise as elementwise,
    products as products,
    rows as rows,
)
