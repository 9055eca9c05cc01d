"""Sources of these tests are executed as they are printed."""

from tests.layout import printed_only

__all__ = ["printed_only"]
