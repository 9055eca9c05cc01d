"""Kernels for CPU plans without oneDNN: BLAS and NumPy on cache-sized tiles."""
