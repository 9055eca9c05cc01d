"""Merging of classes with anti-unifiable bodies into one with parameters."""
