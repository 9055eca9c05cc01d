"""Passes that recognise attention, its masks, and rotary embeddings."""
