"""A compiled function: one plan for each signature of its arguments."""

from __future__ import annotations

import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from burn.backend.arrays import ArrayBackend
from burn.backend.base import Backend
from burn.box import edits
from burn.defaults import default_device
from burn.plan.executable import Executable, PlanMemoryError
from burn.plan.plan_ir import UnforeseenError, UnrepeatableError
from burn.plan.precisions import lowering_passes
from burn.plan.pytree import is_named, mapped
from burn.plan.recorder import UnplannableError
from burn.plan.recordings import PLAIN, Options, Recordings
from burn.primitive import RECORDER
from burn.tensor import Tensor

if TYPE_CHECKING:
    from burn.plan.calibration import Accuracy
    from burn.plan.passes.graph import Pass
    from burn.plan.profile import Profile, Profiler

P = ParamSpec("P")
R = TypeVar("R")

#: The maximum number of plans of a function; the least recently used one is evicted.
PLANS = 8
#: The maximum number of recordings in a plan; beyond it the function runs eagerly.
RECORDINGS = 16


class Compiled(Generic[P, R]):
    """A function with a plan for each signature; calls are thread-safe.

    The first call for each combination of shapes, dtypes and Python arguments runs the
    function and records its primitives; later calls replay them. Parameters are read
    anew in every call. Tensor values that Python reads (``if``, ``item``) become
    branches of the plan; all other state (attributes, globals) is read at recording
    time. Freezing or unfreezing a parameter starts a new recording. A module may be an
    argument: each one has plans of its own.

    Errors of kernels are raised unchanged, and no box is set. If there is not enough
    memory for a plan, the memory of the other plans of the function is released; if
    that is not enough, the plan allocates in each run, and :attr:`notes` says so.

    Boxes may be set: a training step with its gradients and updates is one plan. They
    are set after all other steps. A function whose result has a gradient history, or
    that reads large tensors on the host, is not compiled and runs eagerly;
    :attr:`notes` gives the reason.
    """

    def __init__(
        self,
        function: Callable[P, R],
        precision: str = "float32",
        lowering: tuple[Pass, ...] | None = None,
        *,
        observed: bool = False,
        generated: bool | None = None,
        threads: int | None = None,
        replayed: bool = False,
        profiler: Profiler | None = None,
    ) -> None:
        self.function, self.precision = function, precision
        #: How messages call the function.
        self.name = getattr(function, "__qualname__", type(function).__name__)
        #: The accuracy of each result against float32; empty without a calibration.
        self.accuracy: tuple[Accuracy, ...] = ()
        self._lowering = lowering_passes(precision) if lowering is None else lowering
        self._observed, self._generated = observed, generated
        self._threads = threads
        # Whether the recording call also returns the result of a replay.
        self._replayed, self._profiler = replayed, profiler
        self._plans: OrderedDict[Hashable, Recordings] = OrderedDict()
        self._lock = threading.Lock()
        # Comparing with the last signature is faster than a lookup.
        self._recent: tuple[Hashable, Recordings] | None = None
        self._edits = edits()
        self._evicted = 0
        self._unsupported: dict[type, str] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without plans: a copy records its own plans for its own
        boxes.
        """
        fields = ("function", "name", "precision", "accuracy", "_lowering")
        state = {name: getattr(self, name) for name in fields}
        flags = ("_observed", "_generated", "_threads", "_replayed")
        return state | {name: getattr(self, name) for name in flags}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._plans, self._recent = OrderedDict(), None
        self._lock, self._profiler = threading.Lock(), None
        self._edits, self._evicted, self._unsupported = edits(), 0, {}

    def __repr__(self) -> str:
        is_module = hasattr(self.function, "children")
        shown = repr(self.function) if is_module else self.name
        return (
            f"compile({shown}, precision={self.precision!r}, plans={len(self._plans)})"
        )

    def _repr_html_(self) -> str:
        """Return HTML for notebooks."""
        from burn.notebook import compiled_html

        return compiled_html(self)

    @property
    def notes(self) -> list[str]:
        """Messages about signatures that are not compiled or do not profit from
        precision.
        """
        plans = list(self._plans.values())
        refused = [*self._unsupported.values()]
        refused += [plan.refused for plan in plans if plan.refused]
        bound = [plan.executable for plan in plans if plan.executable is not None]
        if self._evicted:
            refused.append(self._eviction_note())
        # Without duplicates, in order of appearance.
        return refused + list(dict.fromkeys(n for each in bound for n in each.notes))

    def _evict_oldest(self) -> None:
        """Discard the plan that was used least recently; warn if this goes on."""
        self._plans.popitem(last=False)
        self._evicted += 1
        if self._evicted == PLANS:
            warnings.warn(self._eviction_note(), RuntimeWarning, stacklevel=5)

    def _eviction_note(self) -> str:
        return (
            f"{self.name} was recorded for {PLANS + self._evicted} combinations of "
            f"shapes and Python arguments, and keeps {PLANS} plans: further ones are "
            "recorded anew. Pad arrays to a few sizes, and pass numbers as tensors"
        )

    @property
    def executables(self) -> list[Executable]:
        """The executables of all plans, for benchmarks and debugging."""
        plans = list(self._plans.values())
        return [plan.executable for plan in plans if plan.executable is not None]

    def profile(self, *args: P.args, **kwargs: P.kwargs) -> Profile:
        """Return the time of each step of the plan for these arguments.

        The function is recorded again with a profiler, and profiled runs alternate with
        runs of the existing plan. Boxes that the function sets are restored afterwards.

        Raises:
            ValueError: these arguments have no plan, or their device has no profiler.
        """
        from burn.plan.profile import Profiler, profile_calls

        profiler = Profiler(self.function)
        measured: Compiled[P, R] = Compiled(
            *(self.function, self.precision, self._lowering),
            generated=self._generated,
            threads=self._threads,
            replayed=True,
            profiler=profiler,
        )
        try:
            return profile_calls(
                profiler,
                lambda: self(*args, **kwargs),
                lambda: measured(*args, **kwargs),
                lambda: measured.notes,
            )
        finally:
            profiler.restore()

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if RECORDER.get() is not None:
            return self.function(*args, **kwargs)  # recorded by another plan
        if self._threads is None:
            return self._run(args, kwargs)
        with default_device().limited_threads(self._threads):
            return self._run(args, kwargs)

    def _run(self, args: Any, kwargs: Any) -> R:
        if self._edits != edits():
            self._drop_outdated()
        inputs: list[Tensor] = []
        key = _signature(args, kwargs, inputs)
        if key is None:
            mapped(self._note_unsupported, [args, kwargs])
        plan = None if key is None else self._plan(key, inputs)
        if plan is None or plan.refused is not None:
            return self.function(*args, **kwargs)
        if plan.executable is not None:
            try:
                return self._replay(plan, inputs)
            except UnforeseenError as error:
                if plan.count >= RECORDINGS:
                    plan.refused = f"{error}, after {RECORDINGS} recordings"
        if plan.refused is None:
            try:
                recorded: R = plan.record(self.function, (args, kwargs), inputs)
                return recorded
            except (UnplannableError, UnrepeatableError, UnforeseenError) as error:
                plan.refused = str(error)
        return self.function(*args, **kwargs)

    def _note_unsupported(self, leaf: Any) -> None:
        """Note the type of an argument that plans do not support."""
        if _key(leaf, []) is None:
            kind = type(leaf)
            self._unsupported[kind] = (
                f"calls with an argument of type {kind.__module__}.{kind.__qualname__} "
                "are not compiled: pass tensors, modules, numbers, texts, and lists, "
                "tuples and dicts of them"
            )

    def _drop_outdated(self) -> None:
        """Discard plans recorded with other trainable parameters or modules."""
        with self._lock:
            self._edits = edits()
            for where, plan in list(self._plans.items()):
                if plan.is_outdated:
                    del self._plans[where]
            self._recent = None

    def _replay(self, plan: Recordings, inputs: list[Tensor]) -> R:
        """Run a plan; if memory is short, first release the memory of the other plans.

        Raises:
            UnforeseenError: no recording covers this call.
        """
        result: R
        try:
            result = plan.run(inputs)
        except PlanMemoryError:
            with self._lock:
                others = [other for other in self._plans.values() if other is not plan]
            for other in others:
                if other.executable is not None:
                    other.executable.release_memory()
            result = self._replay_in_low_memory(plan, inputs)
        return result

    def _replay_in_low_memory(self, plan: Recordings, inputs: list[Tensor]) -> R:
        result: R
        try:
            result = plan.run(inputs)
        except PlanMemoryError as error:
            assert plan.executable is not None
            plan.executable.allocate_in_each_run(str(error))
            result = plan.run(inputs)
        return result

    def _plan(self, key: Hashable, inputs: list[Tensor]) -> Recordings | None:
        device: Backend | None = None
        for tensor in inputs:
            backend = tensor.backend
            if backend is not device and backend.level > 0:
                if device is not None:
                    return None  # they are on several devices
                device = backend
        device = device or default_device()
        if not isinstance(device, ArrayBackend):
            return None
        where = (key, device)
        recent = self._recent
        if recent is not None and recent[0] == where:
            return recent[1]
        with self._lock:
            plan = self._plans.get(where)
            if plan is None:
                options = Options(
                    *(self.precision, self._lowering, self._observed),
                    *(self._generated, self._profiler, self._replayed),
                )
                plan = self._plans[where] = Recordings(device, options)
                if len(self._plans) > PLANS:
                    self._evict_oldest()
            self._plans.move_to_end(where)
            self._recent = (where, plan)
        return plan


def _signature(args: Any, kwargs: Any, inputs: list[Tensor]) -> Hashable:
    """Return the signature of a call like :func:`_key`, flat if it has tensors alone.

    That takes a third of the time, which is a tenth of a call of a small model.
    """
    if not kwargs:
        parts: list[Any] = []
        for item in args:
            if type(item) is not Tensor:
                break
            data = item.data
            parts += (data.shape, data.dtype)
        else:
            inputs += args
            return tuple(parts)
    return _key((args, kwargs), inputs)


def _key(value: Any, inputs: list[Tensor]) -> Hashable:
    """Return the signature of an argument and append its tensors to ``inputs``.

    Return None for a type that plans do not support.
    """
    kind = type(value)
    if kind is Tensor:
        inputs.append(value)
        data = value.data
        return (data.shape, data.dtype)
    if kind in PLAIN or hasattr(kind, "boxes"):  # a module is identified by its id
        return (kind, value)
    names: tuple[Any, ...] = ()
    if kind is dict:
        names, value = tuple(value), value.values()
    elif kind is not list and kind is not tuple and not is_named(kind):
        return None
    parts: list[Any] = [kind, names]
    for item in value:
        if type(item) is Tensor:  # the usual case, without a function call
            inputs.append(item)
            data = item.data
            parts.append((data.shape, data.dtype))
            continue
        part = _key(item, inputs)
        if part is None:
            return None
        parts.append(part)
    return tuple(parts)
