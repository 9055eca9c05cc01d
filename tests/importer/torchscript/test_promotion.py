"""Result dtypes of traced functions of integers and floats, against PyTorch."""

from __future__ import annotations

import itertools
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from burn_import.frontends.torchscript import read
from burn_ir import build

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(find_spec("torch") is None, reason="needs PyTorch"),
]
UNARY = """
abs acos angle asin atan ceil cos cosh deg2rad erf erfc exp exp2 expm1 floor i0 lgamma
log log10 log1p log2 logit mean median nansum neg positive prod rad2deg reciprocal round
rsqrt sigmoid sign sgn sin sinc sinh sqrt square std sum tan tanh trace trunc var cov
corrcoef trapezoid cumulative_trapezoid special.expit special.ndtr special.ndtri
special.entr special.i0e special.i1 special.i1e special.exp2 special.gammaln vander
"""
BINARY = """
add sub mul div true_divide floor_divide remainder fmod pow atan2 arctan2 copysign
logaddexp logaddexp2 xlogy special.xlog1py maximum minimum fmax fmin hypot ldexp outer
kron inner dist gcd lcm bitwise_and bitwise_left_shift bitwise_right_shift rsub
nn.functional.mse_loss nn.functional.smooth_l1_loss nn.functional.cosine_similarity
"""
DTYPES = ("int64", "uint8", "int32", "bool", "float32", "float16")
#: Functions whose rule differs for one dtype that programs do not use.
EXCEPTIONS = {("square", ("bool",)), ("vander", ("bool",))}


def function(name: str) -> Any:
    """Return a function of PyTorch by its name."""
    import torch

    result: Any = torch
    for part in name.split("."):
        result = getattr(result, part)
    return result


def example(name: str, dtype: str) -> Any:
    """Return a small tensor that functions of the name accept."""
    import torch

    dims = (4,) if name in ("outer", "vander") else (2, 4)
    return torch.arange(1, 9)[: 4 * len(dims)].reshape(dims).to(getattr(torch, dtype))


def as_module(call: Any) -> Any:
    """Return a module that applies a function."""
    import torch

    members = {"forward": lambda self, *inputs: call(*inputs)}
    return type("Net", (torch.nn.Module,), members)()


def check(name: str, dtypes: tuple[str, ...], path: Path) -> None:
    """Compare the dtype that a trace has here with PyTorch's, if PyTorch has one."""
    import torch

    inputs = tuple(example(name, dtype) for dtype in dtypes)
    call = function(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            expected = call(*inputs).dtype
        except (RuntimeError, NotImplementedError):
            return  # PyTorch has no kernel for these dtypes
        traced = torch.jit.trace(as_module(call), inputs, check_trace=False)
        torch.jit.save(traced, path)
    graph = build(read(path))
    actual = graph.type(graph.outputs[0])
    assert actual is not None and str(expected) == f"torch.{actual.dtype}", dtypes


@pytest.mark.parametrize("name", UNARY.split())
def test_functions_of_one_tensor(name: str, tmp_path: Path) -> None:
    for dtype in DTYPES:
        if (name, (dtype,)) not in EXCEPTIONS:
            check(name, (dtype,), tmp_path / "net.pt")


@pytest.mark.parametrize("name", BINARY.split())
def test_functions_of_two_tensors(name: str, tmp_path: Path) -> None:
    for dtypes in itertools.product(DTYPES, repeat=2):
        check(name, dtypes, tmp_path / "net.pt")
