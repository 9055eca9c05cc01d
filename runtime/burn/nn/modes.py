"""A context in which training modules behave like their copies for inference."""

from collections.abc import Iterator
from contextlib import contextmanager

from burn.box import Box, PassingReader, current_reader, reading
from burn.tensor import Tensor


class _Inference(PassingReader):
    """A reader that detaches boxes from their tapes, also for enclosing readers."""

    def read(self, box: Box) -> Tensor:
        value = super().read(box)
        while type(value.data) is Tensor:
            value = value.data
        return value


@contextmanager
def inference() -> Iterator[None]:
    """Make modules in this context compute like ``module.valid()``, without a copy.

    No gradients are recorded, dropout is the identity, and norms use their running
    statistics, also inside ``burn.compile``.
    """
    with reading(_Inference(current_reader())):
        yield
