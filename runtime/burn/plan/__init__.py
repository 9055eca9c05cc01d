"""Plans: what a function does with tensors, recorded once and replayed."""

from burn.plan.calibration import Accuracy
from burn.plan.compiled import Compiled
from burn.plan.entry import compile

__all__ = ["Accuracy", "Compiled", "compile"]
