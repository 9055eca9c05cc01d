"""Plans: what a function does with tensors, recorded once and replayed."""

from burn.backend.arrays import ArrayBackend
from burn.plan.calibration import Accuracy
from burn.plan.compiled import Compiled
from burn.plan.entry import compile
from burn.plan.replay import Replay

ArrayBackend.binder = Replay  # of devices that have no better one

__all__ = ["Accuracy", "Compiled", "compile"]
