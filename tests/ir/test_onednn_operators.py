"""Law 5 on the CPU: operators give the same results with and without oneDNN."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import burn
from burn import dtypes
from burn.backend.cpu.onednn.binding import engine
from burn_ir import operators
from tests.laws import models
from tests.laws.devices import results
from tests.runtime.onednn import needs_onednn
from tests.strategies import examples
from tests.strategies.registry import Key

pytestmark = needs_onednn

#: Operators that are not compared, with the reason.
LEFT_OUT = {
    **dict.fromkeys(
        ("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike")
        + ("RandomUniform", "RandomUniformLike"),
        "draws at random",
    ),
    **dict.fromkeys(models.OTHER_EXAMPLES, "its examples are of another kind"),
}
KEYS = models.keys_without(LEFT_OUT)


@pytest.mark.parametrize("key", KEYS)
@settings(max_examples=settings().max_examples // 5)
@given(data=st.data())
@pytest.mark.sampled(4)
def test_onednn_agrees_with_numpy(key: Key, data: st.DataObject) -> None:
    example = data.draw(examples(key, operators()[key].versions[-1]))
    graph = models.built(key, operators()[key].versions[-1], example, stored=False)
    with engine.whatever_size():
        result = results(graph, example, burn.Cpu())
    with engine.numpy_only():
        expected = results(graph, example, burn.Cpu())
    for part, value in zip(result, expected, strict=True):
        assert (part.dtype, part.shape) == (value.dtype, value.shape)
        if value.dtype == dtypes.string:
            assert part.tolist() == value.tolist()
        elif dtypes.is_float(value.dtype):
            part, value = part.astype(np.float64), value.astype(np.float64)
            tol = max(1e-5, example.rtol)
            scale = float(np.abs(value[np.isfinite(value)]).max(initial=1.0))
            np.testing.assert_allclose(part, value, rtol=tol, atol=tol * scale)
        else:
            np.testing.assert_array_equal(part, value)
