"""Layers under autocast against the same layers with operands cast by hand."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu, Tensor, dtypes, nn, ops
from burn.plan.compiled import Compiled

TRAINING = Autodiff(Cpu())
DTYPES = {"bf16": dtypes.bfloat16, "fp16": dtypes.float16}
EPSILON = {"bf16": 2.0**-8, "fp16": 2.0**-11}
Layer = Callable[..., Tensor]


def _attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return ops.attention(query, key, value, causal=True)


def _recurrent(primitive: Any) -> Layer:
    return lambda x, w, r, b: primitive(x, w, r, b)[0]


LAYERS: dict[str, tuple[Layer, list[tuple[int, ...]]]] = {
    "attention": (_attention, [(2, 2, 5, 4)] * 3),
    "lstm": (_recurrent(ops.lstm), [(5, 2, 3), (1, 16, 3), (1, 16, 4), (1, 32)]),
    "gru": (_recurrent(ops.gru), [(5, 2, 3), (1, 12, 3), (1, 12, 4), (1, 24)]),
    "rnn": (_recurrent(ops.rnn), [(5, 2, 3), (1, 4, 3), (1, 4, 4), (1, 8)]),
    "prelu": (ops.prelu, [(4, 3), (3,)]),
}


def _operands(name: str) -> list[Any]:
    rng = np.random.default_rng(2)
    return [rng.normal(size=s).astype(np.float32) for s in LAYERS[name][1]]


def _computed(
    function: Layer, arrays: list[Any], precision: nn.Precision
) -> tuple[Any, list[Any]]:
    """Return the result, and the gradients of the sum of its squares in float32."""
    operands = [burn.tensor(a).to(TRAINING).require_grad() for a in arrays]
    with nn.autocast(precision):
        result = function(*operands)
    wide = ops.cast(result, dtype=dtypes.float32)
    gradients = (wide * wide).sum().backward()
    return result, [gradients[operand] for operand in operands]


def _cast(function: Layer, dtype: Any) -> Layer:
    """Return ``function`` of operands that are cast to ``dtype``."""
    return lambda *given: function(*(ops.cast(x, dtype=dtype) for x in given))


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_results_and_gradients(name: str, precision: nn.Precision) -> None:
    function, arrays = LAYERS[name][0], _operands(name)
    result, gradients = _computed(function, arrays, precision)
    by_hand = _computed(_cast(function, DTYPES[precision]), arrays, "float32")
    assert result.dtype == DTYPES[precision]
    # The matrices within attention are rounded as well.
    tolerance = 8 * EPSILON[precision] if name == "attention" else 0.0
    pairs = [(result, by_hand[0]), *zip(gradients, by_hand[1], strict=True)]
    for got, expected in pairs:
        got, expected = (np.asarray(t.numpy(), np.float32) for t in (got, expected))
        bound = tolerance * abs(expected).max()
        np.testing.assert_allclose(got, expected, rtol=0, atol=bound)
    assert all(g.dtype == np.float32 and g.numpy().any() for g in gradients)


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_plans(name: str, precision: nn.Precision) -> None:
    function, arrays = LAYERS[name][0], _operands(name)
    expected = _computed(function, arrays, precision)

    class Operands(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.items = nn.ParameterList(nn.Parameter(burn.tensor(a)) for a in arrays)

    model = Operands().to(TRAINING)

    def gradients(factor: Tensor) -> Any:
        with nn.autocast(precision):
            result = function(*(box * factor for box in model.items))
        wide = ops.cast(result, dtype=dtypes.float32)
        return wide.detach(), (wide * wide).sum().backward().by_name(model)

    compiled = Compiled(gradients)
    one = burn.tensor(np.float32(1.0))
    compiled(one)
    result, found = compiled(one)
    assert not compiled.notes
    pairs = [(result, expected[0]), *zip(found.values(), expected[1], strict=True)]
    for got, want in pairs:
        got, want = (np.asarray(t.numpy(), np.float32) for t in (got, want))
        bound = 8 * EPSILON[precision] * abs(want).max()
        np.testing.assert_allclose(got, want, rtol=0, atol=bound)
