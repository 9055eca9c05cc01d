"""Plans: what a function does with tensors, recorded once and replayed."""

from burn.plan.compiled import Compiled, compile

__all__ = ["Compiled", "compile"]
