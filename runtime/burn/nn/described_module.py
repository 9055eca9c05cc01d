"""The base class of layers that show their arguments in ``repr``."""

from burn.box import Box
from burn.nn.module import Module


class DescribedModule(Module):
    """A layer whose public fields, other than its state, are its arguments."""

    def describe(self) -> str:
        """Return the arguments for ``repr``."""
        return ", ".join(
            f"{name}={value!r}"
            for name, value in vars(self).items()
            if not name.startswith("_") and not isinstance(value, Box | Module)
        )
