"""Law 6: compiled plans give the results of eager execution, up to rounding."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import burn
from burn import Tensor, dtypes
from burn_ir import evaluate, operators
from tests.laws import compare, models
from tests.strategies import examples
from tests.strategies.registry import Key

#: Operators that are not compared, with the reason.
LEFT_OUT = {
    **dict.fromkeys(models.OTHER_EXAMPLES, "its examples are of another kind"),
}
KEYS = models.keys_without(LEFT_OUT)


@pytest.mark.parametrize("key", KEYS)
@settings(max_examples=max(1, settings().max_examples // 7))
@given(data=st.data(), stored=st.booleans(), generated=st.booleans())
@pytest.mark.sampled(4)
def test_compiled_is_eager(
    key: Key, data: st.DataObject, stored: bool, generated: bool
) -> None:
    version = operators()[key].versions[-1]
    example = data.draw(examples(key, version))
    graph = models.built(key, version, example, stored)
    inputs = models.operands(example, stored)

    def function(*inputs: Any) -> Any:
        return evaluate(graph, list(inputs))

    tight = replace(example, rtol=1e-5, atol=5e-6)
    compiled = burn.compile(function, generated=generated)
    given = [inputs, inputs, [models.mapped(halved, x) for x in inputs], inputs]
    for operands in given:
        try:
            expected = function(*operands)
        except (ValueError, TypeError, IndexError) as error:
            with pytest.raises(type(error)):
                compiled(*operands)
            continue
        actual = compiled(*operands)
        compare.assert_close(arrays_of(actual), arrays_of(expected), tight)


@pytest.mark.parametrize("key", KEYS)
@settings(max_examples=2)
@given(data=st.data())
@pytest.mark.sampled(8)
def test_fewer_bits_are_no_error(key: Key, data: st.DataObject) -> None:
    version = operators()[key].versions[-1]
    example = data.draw(examples(key, version))
    graph = models.built(key, version, example, stored=False)
    inputs = models.operands(example, stored=False)

    def function(*inputs: Any) -> Any:
        return evaluate(graph, list(inputs))

    expected = forms_of(function(*inputs))
    for precision in ("bf16", "int8"):
        compiled = burn.compile(function, precision=precision)
        for _ in range(2):
            assert forms_of(compiled(*inputs)) == expected, precision


def forms_of(values: Any) -> Any:
    return [models.mapped(lambda y: (y.shape, y.dtype), value) for value in values]


def arrays_of(values: Any) -> Any:
    return [models.mapped(lambda y: y.numpy(), value) for value in values]


def halved(tensor: Tensor) -> Tensor:
    """Return floats halved, and other tensors unchanged."""
    if not dtypes.is_float(tensor.dtype):
        return tensor
    array = tensor.numpy()
    half = np.asarray(array * np.asarray(0.5, array.dtype), array.dtype)
    return Tensor(half, tensor.backend)
