"""Rules of ATen operators for complex tensors and Fourier transforms."""
