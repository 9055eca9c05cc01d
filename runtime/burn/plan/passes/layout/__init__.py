"""Passes that choose the order in memory."""
