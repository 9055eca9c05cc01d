"""Recurrent layers with oneDNN."""
