"""Kernels of channels-last images."""
