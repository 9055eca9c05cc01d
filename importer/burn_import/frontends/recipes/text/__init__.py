"""Recipes of transformers for text, speech, and pairs of text and images."""
