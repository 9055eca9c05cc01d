"""Passes that recognize attention, its masks, and rotary embeddings."""
