"""The module that an operator names gives the results of the operator."""

import pytest
from hypothesis import given, settings, strategies as st

from burn import nn
from burn_ir import evaluate, operators
from burn_ir.layers import layer_of
from tests.laws import compare, models
from tests.sampling import example_count
from tests.strategies import examples

#: Modules that each operator names for some of its examples.
EXPECTED = {
    "Conv": {"Conv1d", "Conv2d", "Conv3d"},
    "ConvTranspose": {"ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"},
    "BatchNorm": {"BatchNorm1d", "BatchNorm2d", "BatchNorm3d"},
    "BatchNormalization": {"BatchNorm1d", "BatchNorm2d", "BatchNorm3d"},
    "InstanceNormalization": {"InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d"},
    "LayerNormalization": {"LayerNorm"},
    "GroupNormalization": {"GroupNorm"},
    "RMSNormalization": {"RMSNorm"},
    "Gemm": {"Linear"},
    "Embedding": {"Embedding"},
    "RandomNormalLike": {"RandomNormalLike"},
    "RandomUniformLike": {"RandomUniformLike"},
    "Bernoulli": {"Bernoulli"},
    "Multinomial": {"Multinomial"},
    "DynamicQuantizeMatMul": {"DynamicQuantizedLinear"},
    "DynamicQuantizeConv": {"DynamicQuantizedConv2d"},
    "MatMulNBits": {"QuantizedLinear"},
    "QLinearConv": {"QLinearConv2d"},
    "QLinearMatMul": {"QLinearMatMul"},
    "QuantizeDequantize": {"QuantizeDequantize"},
    "WeightQuantizedConv": {"WeightQuantizedConv2d"},
    "WeightQuantizedEmbedding": {"WeightQuantizedEmbedding"},
    "WeightQuantizedLinear": {"WeightQuantizedLinear"},
}

DOMAINS = {
    "BatchNorm": "burn",
    "Embedding": "burn",
    "DynamicQuantizeConv": "burn",
    "DynamicQuantizeMatMul": "com.microsoft",
    "MatMulNBits": "com.microsoft",
    "QuantizeDequantize": "burn",
    "WeightQuantizedConv": "burn",
    "WeightQuantizedEmbedding": "burn",
    "WeightQuantizedLinear": "burn",
}


@pytest.mark.parametrize("name", EXPECTED)
def test_layer_computes_what_lower_does(
    name: str, request: pytest.FixtureRequest
) -> None:
    key = DOMAINS.get(name, ""), name
    met = set()

    @settings(max_examples=example_count(150))
    @given(data=st.data())
    def check(data: st.DataObject) -> None:
        example = data.draw(examples(key, operators()[key].versions[-1]))
        graph = models.built(key, operators()[key].versions[-1], example, stored=True)
        (node,) = graph.nodes
        layer = layer_of(graph, node)
        if layer is None:
            return
        met.add(layer.name)
        module = getattr(nn, layer.name)(*layer.args, **layer.options)
        state = {
            parameter: graph.constants[str(node.inputs[position])]
            for parameter, position in layer.weights.items()
        }
        own = module.state_dict()
        assert all(own[key].dtype == array.dtype for key, array in state.items())
        module.load_state_dict({**own, **state})
        (x,) = models.operands(example, stored=True)
        (expected,) = evaluate(graph, [x])
        got = module.valid()(x)
        compare.assert_close([got.numpy()], [expected.numpy()], example)

    check()
    # Few examples of a plain run of Gemm have a layer.
    assert met <= EXPECTED[name]
    assert met == EXPECTED[name] or not request.config.getoption("--all-cases")
