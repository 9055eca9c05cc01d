"""Elementwise CUDA kernels, and their code generation."""
