"""The recordings of a compiled function for one signature of its arguments."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from burn.backend.arrays import ArrayBackend
from burn.box import Parameter, replacements
from burn.plan.executable import Executable, Plan
from burn.plan.plan_ir import Segment, Slot, StackedResult, boxes_read, grow
from burn.plan.pytree import mapped
from burn.plan.recorder import RecordedValue, Recorder, UnplannableError
from burn.structs import Struct
from burn.tensor import Tensor

if TYPE_CHECKING:
    from burn.plan.passes.graph import Pass
    from burn.plan.profile import Profiler

#: The types of Python arguments and results that a plan takes as they are.
PLAIN = (bool, int, float, complex, str, bytes, type(None))


class Recordings:
    """The recordings of one signature, and the executable that a device made of
    them.
    """

    def __init__(self, device: ArrayBackend, options: Options) -> None:
        self.device, self._options = device, options
        self.root = Segment()
        self.executable: Executable | None = None
        self.count = 0
        self.lock = threading.Lock()
        #: The reason why there is no plan.
        self.refused: str | None = None
        self._replacements = replacements()
        # ``requires_grad`` of each parameter at the first recording.
        self._trained: dict[Parameter, bool] = {}

    @property
    def is_outdated(self) -> bool:
        """Whether a parameter was frozen or unfrozen, or a module replaced, since the
        first recording.
        """
        if self._replacements != replacements():
            return True
        return any(box.requires_grad != was for box, was in self._trained.items())

    def run(self, inputs: list[Tensor]) -> Any:
        """Return the result of a replay.

        Raises:
            UnforeseenError: no recording covers this call.
            PlanMemoryError: there is not enough memory for the values of the plan.
        """
        executable, device = self.executable, self.device
        assert executable is not None
        values: list[Any] = [
            tensor.data if tensor.backend is device else device.import_tensor(tensor)
            for tensor in inputs
        ]
        return executable.run(values)

    def record(self, function: Callable[..., Any], args: Any, inputs: Any) -> Any:
        """Run the function, add its trace to the plan, and return the result.

        Raises:
            UnplannableError: the function does something that a plan cannot record.
        """
        recorder = Recorder(self.device, self._options.profiler)
        with recorder.undone_unless_planned(), recorder.active():
            places = iter([recorder.new(tensor) for tensor in inputs])
            positional, named = mapped(
                lambda leaf: next(places) if type(leaf) is Tensor else leaf, args
            )
            result = function(*positional, **named)
            slots = _slots(result, recorder)
        forms = [(tensor.shape, tensor.dtype) for tensor in inputs]
        with self.lock:
            self.count += 1
            grow(self.root, recorder.events, slots, recorder.writes)
            for box in boxes_read(self.root):
                if isinstance(box, Parameter):
                    self._trained.setdefault(box, box.requires_grad)
            plan = Plan(self.root, forms, **self._options.of_plan)
            self.executable = executable = self.device.bind(plan)
        recorder.forget_values()
        if executable.is_lowered or self._options.is_replayed:
            recorder.undo()  # the first result equals later ones
            del (
                recorder,
                result,
                positional,
                named,
                places,
                slots,
            )  # before values are bound
            return self.run(inputs)
        return mapped(_device_leaf, result)


class Options(Struct):
    """Options of all plans of a function, with the names of the fields of
    :class:`Plan`.
    """

    precision: str
    lowering: tuple[Pass, ...]
    is_observed: bool
    generated: bool | None
    profiler: Profiler | None
    is_replayed: bool

    @property
    def of_plan(self) -> dict[str, Any]:
        """The options that a :class:`Plan` has."""
        options = dict(vars(self))
        del options["is_replayed"]
        return options


def _slots(result: Any, recorder: Recorder) -> Any:
    """Return ``result`` with a slot for each tensor that the recorder computed.

    Raises:
        UnplannableError: a leaf is of a type that may hide a tensor.
    """
    return mapped(partial(_slot, recorder=recorder), result)


def _slot(leaf: Any, recorder: Recorder) -> Any:
    # Not a recursive closure, whose reference cycle would keep the recorder alive.
    if type(leaf) is Tensor:
        if type(leaf.data) is RecordedValue:
            return Slot(leaf.data.place)
        if leaf.backend is recorder.device or leaf.backend.level == 0:
            return leaf
        if leaf.node is not None:
            raise UnplannableError("the result has a history: detach() it")
        if type(leaf.data) is Tensor:
            return StackedResult(_slot(leaf.data, recorder), leaf.backend)
    elif type(leaf) in PLAIN:
        return leaf
    raise UnplannableError(f"the result has {leaf!r} in it")


def _device_leaf(leaf: Any) -> Any:
    """Return a leaf of a result, with recorded values replaced by tensors on the
    device.
    """
    if type(leaf) is Tensor and type(leaf.data) is RecordedValue:
        return leaf.data.tensor
    if type(leaf) is Tensor and type(leaf.data) is Tensor:
        return Tensor(_device_leaf(leaf.data), leaf.backend)
    return leaf
