"""CUDA kernels over rows: softmax, norms, their gradients, and the largest element."""
