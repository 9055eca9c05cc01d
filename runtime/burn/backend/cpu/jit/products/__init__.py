"""Kernels of matrix products."""
