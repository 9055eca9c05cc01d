"""Fixture: generated sources of these tests are executed as they are."""

from tests.layout import printed_only

__all__ = ["printed_only"]
