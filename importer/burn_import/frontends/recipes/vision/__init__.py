"""Recipes of networks for images."""
