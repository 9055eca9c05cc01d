"""Convolutions by oneDNN, and the ways in which they are done."""
