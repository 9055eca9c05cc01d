"""Normalisation by oneDNN, and its gradients."""
