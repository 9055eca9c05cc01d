"""Rules of ATen operators for views, indexing and concatenation."""
