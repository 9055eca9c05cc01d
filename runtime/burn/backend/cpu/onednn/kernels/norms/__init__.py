"""Normalization with oneDNN, and its gradients."""
