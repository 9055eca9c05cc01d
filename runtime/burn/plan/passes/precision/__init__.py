"""Passes that lower the precision: bfloat16, and integers by scales."""
