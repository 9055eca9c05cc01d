"""A context in which modules in training behave as their copies for inference."""

from collections.abc import Iterator
from contextlib import contextmanager

from burn.box import Box, Reader, current_reader, reading
from burn.tensor import Tensor


class _Inference:
    """Boxes without their tapes, whoever else asks for them."""

    def __init__(self, outer: Reader | None) -> None:
        self._outer = outer

    def read(self, box: Box) -> Tensor:
        value = box.held() if self._outer is None else self._outer.read(box)
        while type(value.data) is Tensor:
            value = value.data
        return value

    def write(self, box: Box, value: Tensor) -> Tensor:
        if self._outer is not None:
            return self._outer.write(box, value)
        return value.detach().to(box.held().backend)


@contextmanager
def inference() -> Iterator[None]:
    """Within, modules compute as ``module.valid()`` does, without a copy.

    No gradients are recorded, dropout does nothing, and norms use their running
    statistics, also inside of ``burn.compile``.
    """
    with reading(_Inference(current_reader())):
        yield
