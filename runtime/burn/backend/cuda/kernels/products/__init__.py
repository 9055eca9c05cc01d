"""Matrix products on CUDA devices."""
