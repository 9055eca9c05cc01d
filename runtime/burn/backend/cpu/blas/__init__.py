"""Kernels for CPU plans without oneDNN: BLAS and NumPy on cache-sized tiles, and calls
that become generated kernels.

``kernels`` has all of them. oneDNN's kernels import those that they share.
"""
