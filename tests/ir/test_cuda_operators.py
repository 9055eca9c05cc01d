"""Law 5: operators give the same results on a CUDA device as on the host."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import burn
from burn import dtypes
from burn_ir import operators
from tests.laws import models
from tests.laws.devices import results
from tests.strategies import cases, examples
from tests.strategies.registry import Key

pytestmark = pytest.mark.cuda

#: Operators that are not compared, with the reason.
LEFT_OUT = {
    **dict.fromkeys(
        ("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike")
        + ("RandomUniform", "RandomUniformLike"),
        "draws at random",
    ),
    "ImageDecoder": "decodes on the host",
    **dict.fromkeys(
        ("RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit")
        + ("CategoryMapper", "Tokenizer"),
        "strings stay on the host",
    ),
    **dict.fromkeys(
        ("CastMap", "DictVectorizer", "ZipMap", "Gradient", "ReorderInput"),
        "its examples are of another kind",
    ),
    **dict.fromkeys(("Eigh", "Svd"), "the signs of vectors are not determined"),
    **dict.fromkeys(("TfIdf", "TfIdfVectorizer"), "looks up words on the host"),
}
KEYS = [
    pytest.param(key, id=f"{key[0]}:{key[1]}" if key[0] else key[1])
    for key in sorted(cases())
    if key in operators() and key[1] not in LEFT_OUT
]
#: Dtypes that CuPy lacks.
HOST_ONLY = {
    *(dtypes.int2, dtypes.int4, dtypes.uint2, dtypes.uint4, dtypes.string),
    *dtypes.FLOAT8,
}
#: Digits that sums in another order leave.
TOLERANCE = {dtypes.float16: 1e-2, dtypes.bfloat16: 6e-2, dtypes.float64: 1e-9}


@pytest.mark.parametrize("key", KEYS)
@settings(max_examples=6)
@given(data=st.data())
@pytest.mark.sampled(3)
def test_the_device_agrees_with_the_host(key: Key, data: st.DataObject) -> None:
    pytest.importorskip("cupy")
    version = operators()[key].versions[-1]
    example = data.draw(examples(key, version))
    graph = models.built(key, version, example, stored=False)
    if not dtypes_of(graph).isdisjoint(HOST_ONLY):
        return  # CuPy has no such dtype
    result, expected = (
        results(graph, example, device) for device in (burn.Cuda(0), burn.Cpu())
    )
    for part, value in zip(result, expected, strict=True):
        assert (part.dtype, part.shape) == (value.dtype, value.shape)
        tol = max(TOLERANCE.get(value.dtype, 1e-4), example.rtol)
        if dtypes.is_float(value.dtype):
            part, value = part.astype(np.float64), value.astype(np.float64)
        np.testing.assert_allclose(part, value, rtol=tol, atol=10 * tol)


def dtypes_of(graph: Any) -> set[Any]:
    """Return the dtypes of all values of a graph, including subgraphs."""
    matches = {names.dtype for names in graph.types.values()}
    for node in graph.nodes:
        matches |= {graph.type(name).dtype for name in node.inputs if name is not None}
        for body in node.op.bodies().values():
            matches |= dtypes_of(body)
    return matches
