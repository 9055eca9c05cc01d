"""CUDA kernels, by operation."""
