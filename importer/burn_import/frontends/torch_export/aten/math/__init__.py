"""Rules of ATen operators for elementwise functions, reductions and creation."""
