"""Passes that recognise recurrent layers and cells."""
