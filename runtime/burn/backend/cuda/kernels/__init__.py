"""Kernels of CUDA devices, by what they compute."""
