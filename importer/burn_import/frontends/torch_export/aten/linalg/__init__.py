"""Rules of ATen operators for matrices: products, decompositions, solvers."""
