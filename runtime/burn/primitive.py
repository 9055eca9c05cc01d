"""Primitives: operations on arrays with kernels and gradients.

A primitive has a generic kernel on arrays (NumPy's and CuPy's alike), optional kernels
for single devices, and a gradient rule. A call is dispatched to the backend of the
highest level among its arguments; that backend unwraps its layer and calls the
primitive again on the inner tensors, until a device runs a kernel.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from typing import Any, Generic, Literal, ParamSpec, TypeVar, Unpack, cast, overload

from burn.backend.base import Backend
from burn.backend.cpu.device import HOST
from burn.box import Box
from burn.facts import CastPolicy, Facts
from burn.structs import FrozenStruct
from burn.tensor import Tensor

P = ParamSpec("P")
R = TypeVar("R")
Rule = Callable[..., Any]

#: The backend that records every call in this context, including tensor creation.
RECORDER: ContextVar[Backend | None] = ContextVar("burn.recorder", default=None)
# A plain flag in front of the context variable keeps eager calls fast.
_recorders = 0

_PRIMITIVES: dict[str, "Primitive[..., Any]"] = {}
#: The modules of kernels that are not imported yet, by primitive and backend.
_LATER: dict[str, dict[type[Backend], str]] = {}

#: The reason of primitives that passes insert into plans.
PLAN_ONLY = "only plans have it, which record gradients before"


class GradientReads(FrozenStruct):
    """The values that a gradient rule reads; of others it reads shape and dtype.

    ``results`` are positions of results. ``operands[i]`` are the positions of the
    operands whose values the gradient of operand ``i`` reads.
    """

    results: frozenset[int]
    operands: Mapping[int, tuple[int, ...]]


class Primitive(Generic[P, R]):
    """A named operation on arrays with its kernels and its gradient.

    ``outputs`` is the number of results; ``host`` marks results that depend on metadata
    only (a shape) and therefore stay on the host. The other properties are described in
    :class:`burn.facts.Facts`; ``gradient_reason`` is its ``no_gradient``. Passes and
    devices rely on them and not on names. Declared with :func:`primitive`.
    """

    #: The values that the gradient rule reads; None if it may read all.
    reads: GradientReads | None = None
    rule: Rule | None = None
    #: Whether the rule takes None as the gradient of an unused result.
    partial = False

    def __init__(
        self,
        kernel: Callable[P, Any],
        outputs: int,
        host: bool,
        *,
        traceable: bool = False,
        removable: bool = False,
        shaped_by: int | None = None,
        infallible: bool = False,
        bound: Callable[[Any, Any], float] | None = None,
        autocast: CastPolicy = "float32",
        memory_bound: bool = False,
        numpy_time: float | Callable[..., float] | None = None,
        gradient_of: "Primitive[..., Any] | None" = None,
        no_gradient: str | None = None,
    ) -> None:
        self.name, self.kernel = kernel.__name__, kernel
        self.outputs, self.host = outputs, host
        self.plain = outputs == 1 and not host
        self.traceable, self.removable = traceable, removable
        self.shaped_by, self.infallible = shaped_by, infallible
        self.bound, self.autocast = bound, autocast
        self.memory_bound, self.numpy_time = memory_bound, numpy_time
        self.gradient_of, self.gradient_reason = gradient_of, no_gradient
        self.device_kernels: dict[type[Backend], Callable[..., Any]] = {}
        self.__doc__, self.__module__ = kernel.__doc__, kernel.__module__
        self.__name__ = self.name
        self.__wrapped__ = kernel

    def __call__(self, /, *args: P.args, **static: P.kwargs) -> R:
        top: Backend | None = None
        level: float = -1
        for arg in args:
            kind = type(arg)
            if kind is Tensor:
                backend = arg.backend  # type: ignore[attr-defined]
                if backend is not top and backend.level > level:
                    top, level = backend, backend.level
            elif kind is list or kind is tuple or isinstance(arg, Box):
                backend = _highest(arg)
                if backend is not None and backend.level > level:
                    top, level = backend, backend.level
        if _recorders:
            recorder = RECORDER.get()
            if recorder is not None and recorder.level > level:
                top = recorder
        result = (top or HOST).call(self, args, static)
        return cast(R, result)

    def vjp_of_parts(self, rule: Rule) -> Rule:
        """Declare a rule like :meth:`vjp`; gradients of unused results are None."""
        self.partial = True
        return self.vjp(rule)

    def vjp(self, rule: Rule) -> Rule:
        """Declare ``rule(grad, out, *args, **static)``: a gradient for each argument.

        A gradient is ``None``, a tensor, or a function without arguments that computes
        it (called only if the gradient is needed). Rules are written in primitives, so
        that higher derivatives work. With several results ``grad`` and ``out`` are
        tuples.
        """
        self.rule = rule
        return rule

    def declare_reads(
        self,
        operands: Mapping[int, tuple[int, ...]] | None = None,
        *,
        results: tuple[int, ...] = (),
    ) -> None:
        """Declare which values the gradient rule reads (:class:`GradientReads`).

        Tapes keep only the shape and dtype of the others, in place of their memory. A
        rule without this declaration may read every value.
        """
        self.reads = GradientReads(frozenset(results), operands or {})

    def vjp_reading(
        self,
        operands: Mapping[int, tuple[int, ...]] | None = None,
        *,
        results: tuple[int, ...] = (),
    ) -> Callable[[Rule], Rule]:
        """Declare a rule as :meth:`vjp`, and the values that it reads."""
        self.declare_reads(operands, results=results)
        return self.vjp

    def on(self, backend: type[Backend]) -> Callable[[Callable[..., Any]], Any]:
        """Register a kernel for a type of backend."""

        def register(kernel: Callable[..., Any]) -> Callable[..., Any]:
            self.device_kernels[backend] = kernel
            return kernel

        return register

    def kernel_for(self, backend: Backend) -> Callable[..., Any]:
        """Return the kernel for arrays of ``backend``."""
        backend.load_kernels()
        kernel = self.device_kernels.get(type(backend), self.kernel)
        return kernel.imported() if type(kernel) is _LaterKernel else kernel

    def __reduce__(self) -> str:
        return self.name  # of its module, which there is one of

    def __repr__(self) -> str:
        return f"<primitive {self.name}>"


class _LaterKernel:
    """A kernel of a device, whose module is imported when it is first called."""

    __slots__ = ("_backend", "_module", "_primitive")

    def __init__(
        self, primitive: Primitive[..., Any], backend: type[Backend], module: str
    ) -> None:
        self._primitive, self._backend, self._module = primitive, backend, module

    def imported(self) -> Callable[..., Any]:
        """Return the kernel that the module has registered in place of this one."""
        import_module(self._module)
        return self._primitive.device_kernels[self._backend]

    def __call__(self, /, *args: Any, **static: Any) -> Any:
        return self.imported()(*args, **static)


class Composite(Primitive[P, R]):
    """A function of primitives that is printed as one operation.

    It is executed and differentiated through its body. With ``autocast="lower"`` its
    operands are cast first, otherwise only those of the primitives inside.
    """

    def __call__(self, /, *args: P.args, **static: P.kwargs) -> R:
        if _recorders:
            recorder = RECORDER.get()
            if recorder is not None and recorder.keeps_composites:
                return cast(R, recorder.call(self, args, static))
        return cast(R, self.kernel(*args, **static))


def _highest(value: Any) -> Backend | None:
    """Return the backend of highest level in an argument, None without a tensor."""
    if isinstance(value, Tensor):
        return value.backend
    if isinstance(value, Box):
        return value.value.backend
    if isinstance(value, slice):
        value = (value.start, value.stop, value.step)
    elif not isinstance(value, list | tuple):
        return None
    top: Backend | None = None
    for item in value:
        if type(item) is not int:  # nearly always: a shape, axes
            backend = _highest(item)
            if backend is not None and (top is None or backend.level > top.level):
                top = backend
    return top


@overload
def primitive(kernel: Callable[P, Any], /) -> Primitive[P, Tensor]: ...
@overload
def primitive(
    *, outputs: Literal[1] = 1, host: bool = False, **facts: Unpack[Facts]
) -> Callable[[Callable[P, Any]], Primitive[P, Tensor]]: ...
@overload
def primitive(
    *, outputs: Literal[0, 2, 3, 4, 5], host: bool = False, **facts: Unpack[Facts]
) -> Callable[[Callable[P, Any]], Primitive[P, tuple[Tensor, ...]]]: ...
def primitive(
    kernel: Callable[..., Any] | None = None,
    /,
    *,
    outputs: int = 1,
    host: bool = False,
    **facts: Unpack[Facts],
) -> Any:
    """Declare the decorated array kernel as a primitive of the same name.

    Positional arguments are tensors, or values that may come from tensors; keyword-only
    arguments are static. ``outputs=0`` declares a variable number of results (a tuple).
    ``facts`` are described in :class:`burn.facts.Facts`.
    """

    def declare(function: Callable[..., Any]) -> Primitive[..., Any]:
        return _register(Primitive(function, outputs, host, **facts))

    return declare if kernel is None else declare(kernel)


@overload
def composite(body: Callable[P, R], /) -> Composite[P, R]: ...
@overload
def composite(
    *, outputs: Literal[1], autocast: CastPolicy = "float32"
) -> Callable[[Callable[P, Any]], Composite[P, Tensor]]: ...
@overload
def composite(
    *, outputs: Literal[0, 2, 3, 4, 5], autocast: CastPolicy = "float32"
) -> Callable[[Callable[P, R]], Composite[P, R]]: ...
def composite(
    body: Callable[..., Any] | None = None,
    /,
    *,
    outputs: int = 1,
    autocast: CastPolicy = "float32",
) -> Any:
    """Declare the decorated function of primitives as one printable operation.

    With ``outputs`` other than 1 it returns a tuple. Where it is 1 the result is known
    to be a tensor, whatever the body is annotated with: that works on arrays, too.
    """

    def declare(function: Callable[..., Any]) -> Composite[..., Any]:
        composite: Composite[..., Any]
        composite = Composite(function, outputs, False, autocast=autocast)
        composite.gradient_reason = "differentiated through its body"
        _register(composite)
        return composite

    return declare if body is None else declare(body)


def _register(primitive: Primitive[..., Any]) -> Primitive[..., Any]:
    if primitive.name in _PRIMITIVES:
        raise ValueError(f"primitive {primitive.name!r} is declared twice")
    _PRIMITIVES[primitive.name] = primitive
    _postpone(primitive)
    return primitive


def _postpone(primitive: Primitive[..., Any]) -> None:
    """Let the kernels of a primitive be imported by their first calls."""
    for backend, module in _LATER.get(primitive.name, {}).items():
        later = _LaterKernel(primitive, backend, module)
        primitive.device_kernels.setdefault(backend, later)


def kernels_later(
    backend: type[Backend], modules: Mapping[str, tuple[str, ...]]
) -> None:
    """Declare which modules register kernels for ``backend``, by primitive names.

    A module is imported by the first call of one of its kernels.
    """
    for module, names in modules.items():
        for name in names:
            _LATER.setdefault(name, {})[backend] = module
            if name in _PRIMITIVES:
                _postpone(_PRIMITIVES[name])


def primitives() -> dict[str, Primitive[..., Any]]:
    """Return all primitives by name.

    Raises:
        TypeError: a primitive has declared neither a gradient nor that it has none.
    """
    operations = import_module("burn.ops")
    for name in dir(operations):
        getattr(operations, name)  # imports the module that declares it
    for name, primitive in _PRIMITIVES.items():
        if primitive.rule is None and primitive.gradient_reason is None:
            raise TypeError(f"{name} has neither @{name}.vjp nor no_gradient=")
    return dict(_PRIMITIVES)


@contextmanager
def recording(backend: Backend) -> Iterator[Backend]:
    """Dispatch calls in this context to ``backend``, or to a higher level."""
    global _recorders
    token = RECORDER.set(backend)
    _recorders += 1
    try:
        yield backend
    finally:
        _recorders -= 1
        RECORDER.reset(token)
