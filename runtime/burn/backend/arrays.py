"""What the backends that hold real arrays have in common: unwrap, run, wrap."""

from collections.abc import Callable
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
    """The context variable that holds NumPy's error state, and "ignore all" for it.

    Infinities and NaN are results like others, so every kernel runs under it. Setting
    the variable is what ``np.errstate`` does too, at a tenth of its cost.
    """
    context = Context()
    context.run(np.seterr, all="ignore")
    ((variable, state),) = context.items()
    return variable, state


_ERRORS, _IGNORED = _error_state()


class ignoring_errors:  # noqa: N801  it is used like a function
    """Let NumPy's kernels give infinities and NaN without a word."""

    __slots__ = ("_token",)

    def __enter__(self) -> None:
        self._token = _ERRORS.set(_IGNORED)

    def __exit__(self, *error: object) -> None:
        _ERRORS.reset(self._token)


class ArrayBackend(Backend):
    """A backend whose data are arrays of one library; runs kernels at once."""

    #: What kernels nearly always return, and data are.
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
        token = _ERRORS.set(_IGNORED)
        try:
            kernel: Any = primitive.kernel
            if primitive.device_kernels:
                kernel = primitive.device_kernels.get(type(self), kernel)
            result = kernel(*raw, **static) if static else kernel(*raw)
        except (ValueError, TypeError, IndexError) as error:
            error.add_note(f"in ops.{primitive.name}({describe(args, static)})")
            raise
        finally:
            _ERRORS.reset(token)
        if type(result) is self.array_type and primitive.plain:
            return Tensor(result, self)
        home = host() if primitive.host else self
        if primitive.outputs == 1:
            return Tensor(home.as_data(result), home)
        return tuple(Tensor(home.as_data(item), home) for item in result)

    def unwrap(self, arg: Any) -> Any:
        """The raw array of ``arg``; lists, tuples and slices are looked into."""
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
        """The raw array of ``tensor``, which must be here or a host constant."""
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

    def check_compile_options(self, *, generated: bool) -> None:
        """Check that what options of ``burn.compile`` need is installed.

        Raises:
            ImportError: ``generated`` kernels need a compiler that is not there.
        """

    def as_data(self, result: Any) -> Any:
        """``result`` of a kernel as this backend's data."""
        return self.from_numpy(np.asarray(result)) if np.isscalar(result) else result


def _as_int(part: Any) -> Any:
    """A slice bound as an integer: a tensor's value is read on the host."""
    if isinstance(part, Box):
        part = part.value
    return part.item() if type(part) is Tensor else part


def describe(args: tuple[Any, ...], static: dict[str, Any]) -> str:
    """The call's operands in short, for an error's note."""
    shown = [_describe(arg) for arg in args]
    return ", ".join([*shown, *(f"{name}={value!r}" for name, value in static.items())])


def _describe(arg: Any) -> str:
    if isinstance(arg, Tensor | Box | np.ndarray):
        return f"{arg.dtype}{list(arg.shape)}"
    if isinstance(arg, list | tuple):
        return f"[{', '.join(map(_describe, arg))}]"
    return repr(arg)
