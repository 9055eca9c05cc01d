"""Execution plans: recorded traces of a function that are optimized and replayed."""

from typing import TYPE_CHECKING, Any

from burn.backend.arrays import ArrayBackend
from burn.lazy import lazy_names

if TYPE_CHECKING:
    from burn.plan.calibration import Accuracy
    from burn.plan.compiled import Compiled
    from burn.plan.entry import compile
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "burn.plan.calibration": ("Accuracy",),
            "burn.plan.compiled": ("Compiled",),
            "burn.plan.entry": ("compile",),
        },
    )


def _replay(plan: Any, device: Any) -> Any:
    from burn.plan.replay import Replay

    return Replay(plan, device)


ArrayBackend.binder = staticmethod(_replay)  # of devices that have no better one

__all__ = ["Accuracy", "Compiled", "compile"]
