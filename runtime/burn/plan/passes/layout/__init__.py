"""Passes that choose memory layouts."""
