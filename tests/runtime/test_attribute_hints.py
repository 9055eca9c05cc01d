"""Attributes that users of PyTorch and NumPy look for: what is named instead exists."""

import copy
import math
import pickle
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu, Parameter, Tensor, loss, nn, ops, optim
from burn.attribute_hints import (
    MODULES,
    OPTIMIZERS,
    SCHEDULES,
    Hints,
    add_hints,
)
from burn.function_hints import _FUNCTIONS, function_hint
from burn.tensor_hints import BOXES, SHARED, TENSORS

CASES = [
    *(("tensor", *hint) for hint in {**SHARED, **TENSORS}.items()),
    *(("parameter", *hint) for hint in {**SHARED, **BOXES}.items()),
    *(("module", *hint) for hint in MODULES.items()),
    *(("opt", *hint) for hint in OPTIMIZERS.items()),
    *(("schedule", *hint) for hint in SCHEDULES.items()),
]


class _Device(type):
    """``burn.Cuda`` where there is no such device: ``Cuda(0)`` is the host."""

    def __call__(cls, index: int) -> Cpu:
        return Cpu()


def names(subject: str) -> dict[str, Any]:
    """Return the names that hints may have, with values for which they evaluate."""
    module = nn.Linear(3, 3).to(Autodiff(Cpu()))
    opt = optim.SGD(module, lr=0.1)
    array = np.arange(9, dtype=np.float32).reshape(3, 3) + 10 * np.eye(3, dtype="f")
    x = burn.tensor(array).to(Autodiff(Cpu())).require_grad()
    if subject == "parameter":
        x = module.weight  # type: ignore[assignment]
    fake = {
        **{name: getattr(burn, name) for name in dir(burn)},
        "Cuda": _Device("Cuda", (), {}),
        "compile": burn.compile,
    }
    return {
        "burn": type("burn", (), fake),
        "nn": nn,
        "ops": ops,
        "optim": optim,
        "opt": opt,
        "schedule": optim.constant(opt),
        "copy": copy,
        "math": math,
        "np": np,
        "module": module,
        "x": x,
        "y": burn.tensor(np.ones((3, 3), np.float32)),
        "loss": ops.sum(module(x) + x),
        "mask": burn.tensor(np.eye(3, dtype=bool)),
        "indices": burn.tensor(np.zeros((3, 3), np.int64)),
        "axis": 0,
        "axes": (1, 0),
        "shape": (9,),
        "key": "weight",
        "sizes": [1, 2],
        "repeats": (2, 1),
        "low": -1.0,
        "high": 1.0,
        "dtype": burn.float64,
    }


@pytest.mark.parametrize(("subject", "name", "hint"), CASES)
def test_what_a_hint_names_exists(
    subject: str, name: str, hint: str, tmp_path: Any
) -> None:
    space = names(subject)
    if name == "item":  # of one element
        space["x"] = Parameter(burn.tensor([1.0]))
    if name == "cholesky":
        space["x"] = burn.tensor(np.eye(3, dtype=np.float32))
    if name == "get_submodule":
        space["key"] = ""
    if name.startswith("bitwise_") or name == "gcd":
        space["x"] = space["y"] = space["indices"]
    path = tmp_path / "net.safetensors"
    if "path" in hint:
        space["module"].save_weights(path)
    eval(hint.partition("  # ")[0], {**space, "path": path})  # ours, from the table


@pytest.mark.parametrize(("subject", "name", "hint"), CASES)
def test_a_missing_attribute_is_answered_with_its_hint(
    subject: str, name: str, hint: str
) -> None:
    space = names(subject)
    owner = space.get(subject, space["x"])
    assert not hasattr(owner, name) and getattr(owner, name, None) is None
    with pytest.raises(AttributeError) as error:
        getattr(owner, name)
    code = hint.partition("  # ")[0]
    assert str(error.value).startswith(
        f"{type(owner).__name__} has no {name!r}; use {code}"
    )


def test_messages_name_the_class_and_the_remedy() -> None:
    x: Any = burn.tensor([1.0])
    with pytest.raises(AttributeError) as error:
        x.view(1)
    assert str(error.value) == "Tensor has no 'view'; use x.reshape(shape)"
    model: Any = nn.Sequential(nn.Linear(1, 1))
    with pytest.raises(AttributeError) as error:
        model.eval()
    assert str(error.value) == (
        "Sequential has no 'eval'; use module.valid() "
        "(a copy for inference; nn.inference() is a context)"
    )


def test_names_of_the_package() -> None:
    program = """
import burn
from burn.attribute_hints import PACKAGE
for name, hint in PACKAGE.items():
    try:
        getattr(burn, name)
    except AttributeError as error:
        assert str(error) == f"module 'burn' has no attribute {name!r}; use {hint}"
    else:
        raise ValueError(f"burn has {name}")
    exec(hint.partition(",")[0], {"nn": burn.nn})
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_other_attributes_are_answered_as_python_does() -> None:
    x: Any = burn.tensor([1.0])
    for name in ("nothing", "_repr_svg_", "__torch_function__", "_ipython_display_"):
        with pytest.raises(AttributeError, match="'Tensor' object has no attribute"):
            getattr(x, name)
    slow = {"__getattr__", "__getattribute__"}  # of attributes that are there, too
    for owner in (Tensor, Parameter, nn.Module):
        for cls in owner.__mro__[:-1]:
            assert not slow & vars(cls).keys()


def test_hints_are_no_attributes_to_complete() -> None:
    x = burn.tensor([[1.0]])
    for owner in (x, Parameter(x), nn.Linear(1, 1)):
        listed = set(dir(owner))
        assert "to" in listed
        names = [name for name in listed if not name.startswith("__")]
        assert all(hasattr(owner, name) for name in names)


def test_attributes_of_a_module_come_before_hints() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.train = nn.Linear(2, 2)

        def forward(self, x: Tensor) -> Tensor:
            return self.train(x)

    net = Net()
    assert {"train", "forward"} <= set(dir(net)) and "eval" not in dir(net)
    assert [name for name, _ in net.children()] == ["train"]
    assert net.forward(burn.tensor(np.ones((1, 2), np.float32))).shape == (1, 2)


def test_copies_and_pickles_are_as_they_were() -> None:
    x = burn.tensor([1.0, 2.0])
    for again in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        np.testing.assert_array_equal(again.numpy(), x.numpy())
    layer = nn.Linear(2, 2)
    again = pickle.loads(pickle.dumps(copy.deepcopy(layer)))
    np.testing.assert_array_equal(again.weight.numpy(), layer.weight.numpy())


def test_an_attribute_that_is_there_gets_no_hint() -> None:
    hints: Hints = {"reshape": "x.view(shape)"}
    with pytest.raises(ValueError, match="Tensor has 'reshape'"):
        add_hints(Tensor, hints)


#: Methods that networks of PyTorch and code on arrays of NumPy call.
TORCH_AND_NUMPY_METHODS = """
square pow exp log rsqrt abs clamp clamp_ clamp_min where masked_fill masked_fill_
norm std var amax amin argmax cumsum softmax sigmoid contiguous view permute
transpose unsqueeze unsqueeze_ squeeze expand repeat repeat_interleave flatten
unflatten ravel T t mT chunk split unbind narrow select roll flip mm bmm matmul mv
dot outer addmm baddbmm topk sort argsort gather scatter scatter_add index_select
index_add_ masked_select nonzero tril triu diagonal trace cpu cuda to device detach
clone numpy tolist item size dim numel shape dtype type_as float half double long
int bool new_zeros new_ones new_full is_floating_point is_contiguous stride
element_size add_ sub_ mul_ div_ zero_ fill_ copy_ relu_ sigmoid_ tanh_ exp_ sqrt_
pow_ tril_ requires_grad requires_grad_ grad backward retain_grad astype nbytes copy
reshape sum mean min max prod any all ndim itemsize tobytes
"""
#: Operations that are no method here: they take more than tensors, or differ.
DIFFERENT = {"bernoulli", "compress", "dequantize", "multinomial", "polygamma"} | {
    *("resize", "stft", "unfold"),
}


def is_answered(owner: object, name: str) -> bool:
    """Return whether an attribute exists or is refused with a replacement."""
    try:
        getattr(owner, name)
    except AttributeError as error:
        return "; use " in str(error)
    return True


@pytest.mark.parametrize("name", TORCH_AND_NUMPY_METHODS.split())
def test_methods_of_torch_and_numpy_work_or_name_a_replacement(name: str) -> None:
    assert is_answered(burn.tensor([[1.0]]), name)


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_methods_that_are_operations_here_are_named(library: str) -> None:
    module = pytest.importorskip(library)
    owner = module.ndarray if library == "numpy" else module.Tensor
    names = {name for name in dir(owner) if name in set(dir(ops)) - DIFFERENT}
    x = burn.tensor([1.0])
    assert len(names) > 20 and {n for n in names if not is_answered(x, n)} == set()
    assert not [name for name in DIFFERENT if is_answered(x, name)]


@pytest.mark.parametrize("name", ["square", "cat", "conv2d", "softmax", "mse_loss"])
def test_functions_of_pytorch_are_refused_with_ours(name: str) -> None:
    for module in (burn, ops):
        if not (module is ops and name in dir(ops)):
            with pytest.raises(AttributeError, match=f"'{name}'; use ") as error:
                getattr(module, name)
            assert str(error.value).endswith(f"; use {function_hint(name)}")


def test_what_replaces_a_function_exists() -> None:
    assert function_hint("nothing") is None and function_hint("exp") == "ops.exp"
    for name, hint in _FUNCTIONS.items():
        assert function_hint(name) is not None and not hasattr(burn, name)
        for owner, found in re.findall(r"\b(ops|burn\.loss|burn|np)\.(\w+)\b", hint):
            spaces = {"ops": ops, "burn": burn, "np": np, "burn.loss": loss}
            assert found == "loss" or hasattr(spaces[owner], found), hint


def test_other_names_of_packages_suggest_near_ones() -> None:
    program = "import burn; burn.ops.concatt"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True)
    assert b"Did you mean: 'concat'?" in done.stderr
