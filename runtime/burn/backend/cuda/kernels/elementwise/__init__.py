"""Elementwise kernels on CUDA devices, and the CUDA C that is generated for them."""
