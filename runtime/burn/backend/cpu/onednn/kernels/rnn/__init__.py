"""Recurrent layers by oneDNN."""
