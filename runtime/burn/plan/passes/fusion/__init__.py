"""Fusion passes."""
