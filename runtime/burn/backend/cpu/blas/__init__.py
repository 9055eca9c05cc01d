"""Kernels of plans on the CPU without oneDNN: BLAS and NumPy on tiles in the cache."""
