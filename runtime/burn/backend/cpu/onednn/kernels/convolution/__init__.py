"""Convolutions with oneDNN, and their algorithms."""
