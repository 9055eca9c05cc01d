"""Tests of this folder execute generated sources, which need not pass black."""

from tests.layout import printed_only

__all__ = ["printed_only"]
