"""Programs exported by PyTorch give the same results, call after call."""

import copy
import warnings
from collections import OrderedDict
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn_import import load

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(find_spec("torch") is None, reason="needs PyTorch"),
]
Forward = Callable[..., Any]


def module(forward: Forward) -> Any:
    """Return a module of two linear layers and some buffers, with this ``forward``."""
    import torch

    torch.manual_seed(0)
    result: Any = type("Net", (torch.nn.Module,), {"forward": forward})()
    result.first, result.second = torch.nn.Linear(6, 6), torch.nn.Linear(6, 6)
    torch.nn.init.zeros_(result.second.bias)
    result.register_buffer("count", torch.tensor(3))
    result.register_buffer("total", torch.ones(6))
    result.register_buffer("last", torch.zeros(6), persistent=False)
    result.register_buffer("table", torch.ones(6, 6))
    return result


def counted(s: Any, x: Any) -> Any:
    y = s.first(x)
    s.count.add_(1)
    s.total.mul_(0.9).add_(y.mean(0) * 0.1)
    return y * s.total, s.count.clone()


def replaced(s: Any, x: Any) -> Any:
    before = s.last.clone()
    s.last.mul_(0).add_(x.sum(0))
    s.total.add_(before)
    return s.second(x) + before


def unchanged(s: Any, x: Any) -> Any:
    return s.second(s.first(x) * s.total)


def turned(s: Any, x: Any) -> Any:
    before = s.table.sum()
    s.table.t().add_(x.sum(0)).mul_(0.5)
    y = s.table.unsqueeze(0).permute(2, 0, 1)
    y.sub_(1)
    return s.first(x) + s.table[0] + before


def lifted(s: Any, x: Any) -> Any:
    import torch

    y = s.first(x) * torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    return y + torch.arange(60.0).reshape(10, 6)[3] * torch.tensor(2.5)


def branched(s: Any, x: Any) -> Any:
    import torch

    def inner(x: Any, y: Any) -> Any:
        return s.first(x) * y, x.sum()

    def other(x: Any, y: Any) -> Any:
        return s.second(x) - y, y.sum()

    def then(x: Any) -> Any:
        return torch.cond(x.mean() > 0.5, inner, other, (x, x.cos()))

    def orelse(x: Any) -> Any:
        return x * s.total, x.amax()

    return torch.cond(x.sum() > 0, then, orelse, (x,))


def branched_on_state(s: Any, x: Any) -> Any:
    import torch

    s.total.add_(x.sum(0))
    sides = (lambda x: s.first(x) + s.total, lambda x: s.second(x) - s.total)
    return torch.cond(s.total.sum() > 6, *sides, (x,))


def named(s: Any, x: Any) -> Any:
    pair = (x + 1, [x * 2])
    return OrderedDict(logits=s.first(x), pair=pair, nothing=None, three=3)


FORWARDS = [
    counted,
    replaced,
    unchanged,
    turned,
    lifted,
    branched,
    branched_on_state,
    named,
]
SIZES = (2, 5, 3)


def arrays(results: Any) -> list[Any]:
    """Return the outputs of a module as a list of arrays."""
    import torch

    if isinstance(results, torch.Tensor):
        return [results.detach().numpy().copy()]
    if isinstance(results, dict):
        return arrays(list(results.values()))
    if isinstance(results, tuple | list):
        return [array for result in results for array in arrays(result)]
    return [] if results is None else [np.array(results)]


def exported(result: Any, path: Path, decomposed: bool) -> Any:
    """Return a new copy of the module whose program is at ``path``."""
    import torch

    fresh = copy.deepcopy(result)
    sample = (torch.randn(4, 6),)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        shapes = {"x": {0: torch.export.Dim("rows")}}
        program = torch.export.export(result.eval(), sample, dynamic_shapes=shapes)
        if decomposed:
            program = program.run_decompositions()
        torch.export.save(program, path)
    return fresh


def inputs() -> Sequence[Any]:
    rng = np.random.default_rng(0)
    results = [rng.normal(size=(size, 6)).astype(np.float32) for size in SIZES]
    return [*results, np.abs(results[0]), -np.abs(results[1]), np.abs(results[2]) + 1]


@pytest.mark.parametrize("decomposed", [False, True], ids=["", "decomposed"])
@pytest.mark.parametrize("forward", FORWARDS, ids=lambda f: f.__name__)
def test_calls_compute_what_pytorch_does(
    forward: Forward, decomposed: bool, tmp_path: Path
) -> None:
    import torch

    path = tmp_path / "net.pt2"
    twin = exported(module(forward), path, decomposed)
    model: Any = load(path)
    for x in inputs():
        result = model(burn.tensor(x))
        actual = result if isinstance(result, tuple) else (result,)
        expected = arrays(twin(torch.from_numpy(x)))
        for a, b in zip(actual, expected, strict=True):
            np.testing.assert_allclose(a.numpy(), b, rtol=1e-5, atol=1e-5)
    state = {name: tensor.detach().numpy() for name, tensor in twin.named_buffers()}
    for key, tensor in model.state_dict().items():
        if key in state:
            np.testing.assert_allclose(tensor.numpy(), state[key], rtol=1e-5, atol=1e-5)


def test_what_is_returned_has_the_keys_as_names(tmp_path: Path) -> None:
    exported(module(named), tmp_path / "net.pt2", False)
    model: Any = load(tmp_path / "net.pt2")
    result = model(burn.tensor(inputs()[0]))
    assert result._fields == ("logits", "pair_0", "pair_1", "three")


def test_the_weights_are_those_of_pytorch(tmp_path: Path) -> None:
    twin = exported(module(unchanged), tmp_path / "net.pt2", False)
    model: Any = load(tmp_path / "net.pt2")
    used = {k: v.numpy() for k, v in twin.state_dict().items()}
    assert sorted(model.state_dict()) == sorted(used)
    parameters = sorted(name for name, _ in twin.named_parameters())
    assert sorted(name for name, _ in model.parameters()) == parameters
    model.load_state_dict(used)
