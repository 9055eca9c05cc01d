"""Passes that recognize recurrent layers and cells."""
