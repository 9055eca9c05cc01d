"""A recorder of primitive calls with the source line of each step.

With symbolic dimensions, it also records which values follow from constants and shapes
alone, since they may change with a dimension.
"""

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import burn
from burn.backend.arrays import ArrayBackend
from burn.box import Box
from burn.plan.plan_ir import Step, slots_in
from burn.plan.recorder import Recorder
from burn.primitive import Composite, Primitive, recording
from burn.tensor import Tensor, innermost
from burn_import.export.errors import ExportError, Source

_RUNTIME = str(Path(burn.__file__).parent)
_HERE = str(Path(__file__).parent)


class ExportRecorder(Recorder):
    """A recorder of one run of a function, for the export.

    ``paths`` maps module identities to paths, ``composites`` names the composites
    that are recorded as one step. With ``specialize`` the function may read values
    on the host, which :attr:`reads` lists.
    """

    keeps_composites = True

    def __init__(
        self,
        device: ArrayBackend,
        paths: Mapping[int, str],
        composites: Iterable[str],
        *,
        symbolic: bool,
        specialize: bool,
    ) -> None:
        super().__init__(device)
        self._paths, self._composites = paths, frozenset(composites)
        self._symbolic, self._specialize = symbolic, specialize
        #: The source of each event.
        self.sources: list[Source] = []
        #: Sources of reads of tensor values on the host.
        self.reads: list[Source] = []
        #: Values that follow from constants and shapes alone, by slot.
        self.constants: dict[int, Tensor] = {}

    def read(self, box: Box) -> Tensor:
        return innermost(super().read(box))  # no gradients are recorded

    def call(
        self,
        primitive: Primitive[..., Any],
        args: tuple[Any, ...],
        static: dict[str, Any],
    ) -> Any:
        if isinstance(primitive, Composite):
            if primitive.name == "zip_map" and self._symbolic:
                raise ExportError(
                    f"{self.source()}: ops.zip_map returns a dict for each row, and "
                    "the number of rows is a named dimension; return the tensor that "
                    "it reads, or export all dimensions fixed"
                )
            if primitive.name not in self._composites:
                return primitive.kernel(*args, **static)
            return self._composite(primitive, args, static)
        count = len(self.events)
        result = super().call(primitive, args, static)
        if not any(type(event) is Step for event in self.events[count:]):
            if not self._symbolic:
                return result
            result = self._step(primitive, args, static, result)
        self._note(result)
        return result

    def _composite(self, primitive: Any, args: Any, static: Any) -> Any:
        """Return the result of a composite, recorded as one step."""
        pairs = [self.argument(arg) for arg in args]
        if all(plain is slot for plain, slot in pairs):
            return primitive.kernel(*args, **static)
        plain = [plain for plain, _ in pairs]
        with recording(self.device):
            result = primitive.kernel(*plain, **static)
        result = self._step(primitive, args, static, result)
        self._note(result)
        return result

    def _step(self, primitive: Any, args: Any, static: Any, result: Any) -> Any:
        """Record a new step that computes ``result`` in slots of its own; return it."""
        is_tuple = isinstance(result, tuple)
        items = [self.new(item) for item in (result if is_tuple else (result,))]
        slots = tuple(self.argument(arg)[1] for arg in args)
        self.events.append(
            Step(
                *(primitive, slots, static),
                outputs=tuple(item.data.place for item in items),
                shapes=tuple(item.shape for item in items),
                dtypes=tuple(item.dtype for item in items),
            )
        )
        return tuple(items) if is_tuple else items[0]

    def _note(self, result: Any) -> None:
        """Note the source of the last step, and whether it is a constant."""
        step = self.events[-1]
        self.sources += [self.source()] * (len(self.events) - len(self.sources))
        if not self._symbolic or not isinstance(step, Step):
            return
        operands = slots_in(list(step.args))
        if step.primitive.host or all(slot in self.constants for slot in operands):
            for item in result if isinstance(result, tuple) else (result,):
                self.constants[item.data.place] = item.data.tensor

    def to_numpy(self, data: Any) -> np.ndarray[Any, Any]:
        array: np.ndarray[Any, Any] = data.tensor.numpy()
        if data.place in self.constants:
            return array
        source = self.source()
        if not self._specialize:
            raise ExportError(
                f"{source}: Python reads the value of a tensor, which a graph cannot; "
                "specialize=True (--specialize) exports the operations that the "
                "example runs"
            )
        self.reads.append(source)
        return array

    def source(self) -> Source:
        """Return the current source line of the function, outside of the runtime."""
        frame: FrameType | None = sys._getframe(1)
        path, where = "", None
        while frame is not None and (where is None or not path):
            name = frame.f_code.co_filename
            if not path:
                path = self._paths.get(id(frame.f_locals.get("self")), "")
            if where is None and not name.startswith((_RUNTIME, _HERE)):
                where = (name, frame.f_lineno)
            frame = frame.f_back
        return Source(path, *(where or ("", 0)))


def boxes_by_name(model: Any) -> dict[Box, str]:
    """Return the first key of each box of ``model``; empty for a function."""
    names: dict[Box, str] = {}
    if hasattr(model, "boxes"):
        for name, box in model.boxes():
            names.setdefault(box, name)
    return names


def paths_of(model: Any) -> dict[int, str]:
    """Return the path of each module by identity; empty for a function."""
    if not hasattr(model, "modules"):
        return {}
    return {id(module): path for path, module in model.modules()}
