"""Functions of TorchScript that are no operators: ``ops.prim`` and ``torch.jit``."""

from collections.abc import Callable, Mapping
from typing import Any

from burn_import.frontends.torchscript.operators.builtins import scalar_of
from burn_import.frontends.torchscript.operators.operators import Operators
from burn_import.frontends.torchscript.values import (
    DEVICE,
    ContextManager,
    PyValue,
    TensorRef,
)
from burn_ir.graph_builder import Origin


class Raised(Exception):  # noqa: N818  an effect of the program
    """The program raises an error itself."""


def _raise(machine: Operators, origin: Origin, *args: PyValue) -> PyValue:
    raise Raised(str(args[0]) if args and isinstance(args[0], str) else "an error")


def _as_tensor(machine: Operators, origin: Origin, x: PyValue) -> PyValue:
    return machine.tensor(x, origin)


def _dtype(machine: Operators, origin: Origin, x: TensorRef) -> PyValue:
    return scalar_of(x)


def _limit_function(name: str) -> Callable[..., PyValue]:
    def follow(machine: Operators, origin: Origin, *args: PyValue) -> PyValue:
        return machine.call(name, list(args), {}, origin)

    return follow


def _constant(value: Any) -> Callable[..., PyValue]:
    return lambda machine, origin, *args: value


def _context_manager(kind: str) -> Callable[..., PyValue]:
    return lambda machine, origin, *args: ContextManager(kind)


PRIMITIVES: Mapping[str, Callable[..., PyValue]] = {
    "ops.prim.NumToTensor": _as_tensor,
    "ops.prim.RaiseException": _raise,
    "ops.prim.dtype": _dtype,
    "ops.prim.device": _constant(DEVICE),
    "ops.prim.type": _constant("cpu"),
    "ops.prim.index": _constant(0),
    "ops.prim.layout": _constant(0),
    "ops.prim.data": lambda machine, origin, x: x,
    "ops.prim.max": _limit_function("max"),
    "ops.prim.min": _limit_function("min"),
    "ops.prim.abs": _limit_function("abs"),
    **{
        f"ops.prim.is_{name}": _constant(False)
        for name in ("nested", "cuda", "sparse", "quantized", "mkldnn", "meta", "mps")
    },
    # PyTorch's layers have a fused fast path for inference, and one with ordinary
    # operators that they take if gradients may be needed. This selects the latter.
    "ops.prim.requires_grad": _constant(True),
    "torch.jit.is_scripting": _constant(True),
    **{
        f"__torch__.torch.{path}.__new__": _context_manager(path.rpartition(".")[2])
        for path in (
            "amp.autocast_mode.autocast",
            "autograd.grad_mode.no_grad",
            "autograd.profiler.record_function",
        )
    },
}
