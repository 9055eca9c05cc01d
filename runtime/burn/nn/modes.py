"""A context in which modules in training behave as their copies for inference."""

from collections.abc import Iterator
from contextlib import contextmanager

from burn.box import Box, PassingReader, current_reader, reading
from burn.tensor import Tensor


class _Inference(PassingReader):
    """Boxes without their tapes, whoever else asks for them."""

    def read(self, box: Box) -> Tensor:
        value = super().read(box)
        while type(value.data) is Tensor:
            value = value.data
        return value


@contextmanager
def inference() -> Iterator[None]:
    """Within, modules compute as ``module.valid()`` does, without a copy.

    No gradients are recorded, dropout does nothing, and norms use their running
    statistics, also inside of ``burn.compile``.
    """
    with reading(_Inference(current_reader())):
        yield
