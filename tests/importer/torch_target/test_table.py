"""The tables of the PyTorch target: forms, helpers, and what the gate allows."""

import re
from pathlib import Path

import pytest

from burn.primitive import primitives
from burn_import.codegen.torch import forms, layers
from burn_import.codegen.torch.module import helpers, with_calls
from burn_import.codegen.torch.registry import FORMS, form
from burn_import.codegen.torch.rules import public

SOURCES = {
    path.name: path.read_text("utf-8")
    for path in Path(forms.__file__).parent.iterdir()
    if path.suffix == ".py"
}
#: Helpers that other parts of the target copy.
OTHER_HELPERS = {
    *("_gradient", "_load", "_device", "_Attention", "_Conv1D", "_GlobalAvgPool"),
    *("_RandomNormalLike", "_RandomUniformLike", "_causal_mask"),
    *("_DynamicQuantizedConv", "_DynamicQuantizedLinear", "_QuantizedLinear"),
    *("_QLinearConv", "_QLinearMatMul", "_QuantizeDequantize"),
    *("_WeightQuantizedConv", "_WeightQuantizedEmbedding"),
    "_WeightQuantizedLinear",
    *(f"_PaddedConv{rank}d" for rank in (1, 2, 3)),
}
#: Helpers whose names forms derive from the name of a primitive.
DERIVED_NAMES = {
    *("_all", "_any", "_prod", "_cumsum", "_cumprod", "_softmax", "_log_softmax"),
    *("_layer_norm", "_rms_norm", "_attention_weights", "_attention_scores"),
    *("_depth_to_space", "_space_to_depth", "_last_argmax", "_last_argmin"),
    *("_lstm", "_gru", "_rnn", "_quantize", "_dequantize", "_integer_matmul"),
    *("_quantization_range", "_integer_conv", "_quantized_conv"),
    "_quantized_matmul",
}


def named() -> set[str]:
    """Return the helpers that the forms name."""
    text = "\n".join(SOURCES.values())
    return set(re.findall(r'"(_[a-z]\w*)"', text))


def test_every_form_is_of_a_primitive() -> None:
    assert set(FORMS) <= set(primitives())
    assert len(FORMS) > 140


def test_a_primitive_has_one_form() -> None:
    relu = primitives()["relu"]
    with pytest.raises(ValueError, match="'relu' has two forms"):
        form(relu)(lambda r, call: NotImplemented)


def test_helpers_that_are_named_exist_and_are_needed() -> None:
    assert named() - {"_unsqueeze"} <= set(helpers())
    wanted = {one.name for one in with_calls(named() | DERIVED_NAMES | OTHER_HELPERS)}
    assert wanted == set(helpers())


def test_the_gate_lists_what_forms_write() -> None:
    written = re.findall(r'"(torch|F)\.(\w+)["(.]', "\n".join(SOURCES.values()))
    for module, name in written:
        assert name in public()[module], f"{module}.{name}"


def test_a_layer_is_written_by_one_row() -> None:
    assert not layers.SAME & layers.ROWS.keys()
