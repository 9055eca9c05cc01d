"""The layer without weights of an operator computes the results of ``lower``."""

import pytest
from hypothesis import given, settings, strategies as st

from burn import nn
from burn_ir import evaluate, operators
from tests.laws import compare, models
from tests.strategies import examples

#: The classes of layers that the examples of each operator have.
EXPECTED = {
    "LeakyRelu": {"LeakyReLU"},
    "Elu": {"ELU"},
    "Gelu": {"GELU"},
    "MaxPool": {"MaxPool1d", "MaxPool2d", "MaxPool3d"},
    "AveragePool": {"AvgPool1d", "AvgPool2d", "AvgPool3d"},
    "Celu": {"CELU"},
    "GlobalAveragePool": {f"AdaptiveAvgPool{n}d" for n in (1, 2, 3)},
    "LogSoftmax": {"LogSoftmax"},
    "Softmax": {"Softmax"},
}


@pytest.mark.parametrize("name", EXPECTED)
def test_stateless_layer_computes_what_lower_does(name: str) -> None:
    key = ("", name)
    version = operators()[key].versions[-1]
    met = set()

    @settings(max_examples=60)
    @given(data=st.data())
    def check(data: st.DataObject) -> None:
        example = data.draw(examples(key, version))
        graph = models.built(key, version, example, stored=False)
        (node,) = graph.nodes
        layer = node.op.stateless_layer(*(graph.type(n) for n in node.inputs))
        if layer is None:
            return
        met.add(layer.name)
        module = getattr(nn, layer.name)(*layer.args, **layer.options)
        (x,) = models.operands(example, stored=False)
        expected, *_ = evaluate(graph, [x])
        got = module(x)
        compare.assert_close([got.numpy()], [expected.numpy()], example)

    check()
    assert met, "no example has a module"
    assert met <= EXPECTED[name]
