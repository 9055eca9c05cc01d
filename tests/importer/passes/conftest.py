"""Tests of this folder execute generated sources, which black need not lay out."""

from tests.layout import printed_only

__all__ = ["printed_only"]
