"""The base class of backends that hold arrays: unwrap operands, run, wrap results."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from contextvars import Context, ContextVar
from typing import TYPE_CHECKING, Any

import numpy as np

from burn.backend.base import Backend
from burn.box import Box
from burn.defaults import host
from burn.tensor import Tensor

if TYPE_CHECKING:
    from burn.plan.executable import Executable, Plan
    from burn.primitive import Primitive


def _error_state() -> tuple[ContextVar[Any], Any]:
    """Return NumPy's context variable of the error state, and its "ignore all" value.

    Kernels may return infinities and NaN, so all run under this state. Setting the
    variable has the effect of ``np.errstate`` at a tenth of its cost.
    """
    context = Context()
    context.run(np.seterr, all="ignore")
    ((variable, state),) = context.items()
    return variable, state


#: A context manager takes half a microsecond, three times as long as both calls.
ERRORS, IGNORED = _error_state()


class ignoring_errors:  # noqa: N801  it is used like a function
    """A context manager that disables NumPy's floating-point warnings."""

    __slots__ = ("_token",)

    def __enter__(self) -> None:
        self._token = ERRORS.set(IGNORED)

    def __exit__(self, *error: object) -> None:
        ERRORS.reset(self._token)


class ArrayBackend(Backend):
    """A backend whose data are arrays of one library; it runs kernels immediately."""

    #: The type of the device's arrays, which nearly all kernels return.
    array_type: type[Any] | None = None
    #: Binds plans to devices of this class. :mod:`burn.plan` sets one that replays the
    #: kernels; the package of a device sets its own.
    binder: "Callable[[Plan, Any], Executable]"

    def call(
        self,
        primitive: "Primitive[..., Any]",
        args: tuple[Any, ...],
        static: dict[str, Any],
    ) -> Any:
        raw = []
        for arg in args:
            if type(arg) is Tensor and arg.backend is self:
                raw.append(arg.data)
            else:
                raw.append(self.unwrap(arg))
        token = ERRORS.set(IGNORED)
        try:
            kernel: Any = primitive.kernel
            if primitive.device_kernels:
                kernel = primitive.device_kernels.get(type(self), kernel)
            result = kernel(*raw, **static) if static else kernel(*raw)
        except (ValueError, TypeError, IndexError, AttributeError) as error:
            refuse_foreign(primitive.name, raw)
            error.add_note(f"in ops.{primitive.name}({describe(args, static)})")
            raise
        finally:
            ERRORS.reset(token)
        if type(result) is self.array_type and primitive.plain:
            return Tensor(result, self)
        home = host() if primitive.host else self
        if primitive.outputs == 1:
            return Tensor(home.as_data(result), home)
        return tuple(Tensor(home.as_data(item), home) for item in result)

    def one_time_calls(self) -> "ArrayBackend":
        """Return the backend for calls on this device that are made once.

        A device whose kernels are compiled at their first call may have another one.
        """
        return self

    def unwrap(self, arg: Any) -> Any:
        """Return the raw array of ``arg``, recursively in lists, tuples and slices."""
        kind = type(arg)
        if kind is Tensor:
            return self.import_tensor(arg)
        if kind is list or kind is tuple:
            for item in arg:
                if type(item) is not int:
                    return kind([self.unwrap(item) for item in arg])
            return arg
        if kind is slice:
            parts = (arg.start, arg.stop, arg.step)
            return slice(*(_as_int(part) for part in parts))
        if isinstance(arg, Box):
            return self.import_tensor(arg.value)
        return arg

    def import_tensor(self, tensor: Tensor) -> Any:
        """Return the raw array of ``tensor``, which is on this device or the host."""
        home = tensor.backend
        if home is self:
            return tensor.data
        if home.level == 0:
            return self.from_numpy(tensor.data)
        raise ValueError(
            f"expected every tensor on {self}, got one on {home}; "
            f"move it with .to({self})"
        )

    def bind(self, plan: "Plan") -> "Executable":
        """Return an executable of ``plan`` on this device, by :attr:`binder`."""
        return type(self).binder(plan, self)

    def check_compile_options(self, *, generated: bool, threads: int | None) -> None:
        """Check that the dependencies of options of ``burn.compile`` are installed.

        Raises:
            ImportError: the compiler for ``generated`` kernels, or the package that
                limits ``threads``, is not installed.
        """

    def limited_threads(self, count: int) -> AbstractContextManager[None]:
        """Return a context in which at most ``count`` threads compute on the host.

        A device that does not compute there has no limit.
        """
        return nullcontext()

    def as_data(self, result: Any) -> Any:
        """Return the ``result`` of a kernel as this backend's data."""
        return self.from_numpy(np.asarray(result)) if np.isscalar(result) else result


def _as_int(part: Any) -> Any:
    """Return a slice bound as an integer; a tensor is read on the host."""
    if isinstance(part, Box):
        part = part.value
    return part.item() if type(part) is Tensor else part


def refuse_foreign(name: str, args: list[Any]) -> None:
    """Refuse arrays of libraries whose arrays no kernel takes, such as PyTorch's.

    Raises:
        TypeError: an operand is one.
    """
    for arg in args:
        library = foreign_library(arg)
        if library is not None:
            raise TypeError(
                f"ops.{name}: expected tensors or NumPy arrays, got a "
                f"{library}.{type(arg).__name__}; convert it with burn.tensor(x)"
            )


def foreign_library(value: Any) -> str | None:
    """Return the library of an array kernels do not take, None for other values."""
    kind = type(value)
    library = kind.__module__.partition(".")[0]
    if not hasattr(kind, "__dlpack__") or library in ("numpy", "cupy", "burn"):
        return None
    return library


def describe(args: tuple[Any, ...], static: dict[str, Any]) -> str:
    """Return a short description of the operands of a call, for an error's note."""
    shown = [_describe(arg) for arg in args]
    return ", ".join([*shown, *(f"{name}={value!r}" for name, value in static.items())])


def _describe(arg: Any) -> str:
    if isinstance(arg, Tensor | Box | np.ndarray):
        return f"{arg.dtype}{list(arg.shape)}"
    if isinstance(arg, list | tuple):
        return f"[{', '.join(map(_describe, arg))}]"
    return repr(arg)
