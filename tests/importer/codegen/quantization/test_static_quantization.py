"""Source of statically quantized models, whose tools insert nodes without a scope."""

from pathlib import Path

import numpy as np

from tests.importer.looped import check, normal
from tests.modules import Array


class Writer:
    """The text of a model in which values are quantized and dequantized."""

    def __init__(self) -> None:
        self.lines = ""
        self.weights: dict[str, Array] = {}
        self.count = 0

    def node(self, name: str, result: str, call: str) -> str:
        self.lines += f'["{name}"] {result} = {call}\n'
        return result

    def rounded(self, value: str) -> str:
        """Quantize and dequantize a value, in nodes without names."""
        n = self.count = self.count + 1
        self.weights[f"{value}_scale"] = np.array(0.011 + n / 900, np.float32)
        self.weights[f"{value}_zero_point"] = np.array(120 + n, np.uint8)
        numbers = f"{value}_scale, {value}_zero_point"
        self.lines += f"{value}_q = QuantizeLinear ({value}, {numbers})\n"
        self.lines += f"{value}_d = DequantizeLinear ({value}_q, {numbers})\n"
        return f"{value}_d"

    def stored(self, key: str, *shape: int) -> str:
        """Return a stored array, dequantized from integers."""
        n = self.count = self.count + 1
        integers = np.random.default_rng(n).integers(-99, 99, shape).astype(np.int8)
        self.weights[f"{key}_quantized"] = integers
        self.weights[f"{key}_scale"] = np.array(0.004 + n / 9000, np.float32)
        name = key.replace(".", "__")
        operands = f"{name}_quantized, {name}_scale"
        self.lines += f"w{n} = DequantizeLinear ({operands})\n"
        return f"w{n}"

    def source(self, folder: Path, inputs: str, result: str, **feeds: Array) -> str:
        text = f"agraph ({inputs}) => (float[n, 16] {result}) {{\n{self.lines}}}"
        return check(folder, text, feeds, weights=self.weights)


def test_layers_quantize_their_input_if_the_last_result_is_a_float(
    tmp_path: Path,
) -> None:
    w = Writer()
    x = w.node("/stem/Tanh", "stem", "Tanh (x)")
    for i in range(3):
        path = f"layers.{i}"
        x = w.rounded(x)
        weight = w.stored(f"{path}.fc.weight", 16, 16)
        y = w.node(f"/{path}/fc/MatMul", f"m{i}", f"MatMul ({x}, {weight})")
        y = w.node(f"/{path}/Relu", f"r{i}", f"Relu ({w.rounded(y)})")
        x = w.node(f"/{path}/Add", "y" if i == 2 else f"a{i}", f"Add ({y}, {x})")
    source = w.source(tmp_path, "float[n, 16] x", "y", x=normal(3, 16))
    assert "nn.ModuleList(Layer() for _ in range(layers))" in source
    assert "self.input_quantizer = nn.QuantizeDequantize()" in source
    assert "self.fc = nn.WeightQuantizedLinear(16, 16, bias=False)" in source
    assert "self.fc_quantizer = nn.QuantizeDequantize()" in source


def test_quantizers_stay_in_their_layers_if_all_results_are_rounded(
    tmp_path: Path,
) -> None:
    w = Writer()
    x = w.rounded("x")
    for i in range(3):
        path = f"layers.{i}"
        weight = w.stored(f"{path}.fc.weight", 16, 16)
        y = w.node(f"/{path}/fc/MatMul", f"m{i}", f"MatMul ({x}, {weight})")
        x = w.rounded(w.node(f"/{path}/Relu", f"r{i}", f"Relu ({y})"))
    w.node("/Neg", "y", f"Neg ({x})")
    source = w.source(tmp_path, "float[n, 16] x", "y", x=normal(3, 16))
    assert "nn.ModuleList(Layer() for _ in range(layers))" in source
    assert "self.x_quantizer = nn.QuantizeDequantize()" in source
    assert "return self.relu_quantizer(ops.relu(self.fc(x)))" in source


def test_modules_with_and_without_rounded_results_share_a_class(
    tmp_path: Path,
) -> None:
    w = Writer()
    x = "x"
    for i, name in enumerate(("first", "second")):
        path = f"{name}.output"
        weight = w.stored(f"{path}.fc.weight", 16, 16)
        y = w.node(f"/{name}/output/fc/MatMul", f"m{i}", f"MatMul ({x}, {weight})")
        y = w.node(f"/{name}/output/Tanh", f"t{i}", f"Tanh ({w.rounded(y)})")
        y = w.rounded(y) if i == 0 else y
        weight = w.stored(f"{name}.proj.weight", 16, 16)
        x = w.node(f"/{name}/proj/MatMul", f"p{i}", f"MatMul ({y}, {weight})")
    w.node("/Neg", "y", f"Neg ({x})")
    source = w.source(tmp_path, "float[n, 16] x", "y", x=normal(3, 16))
    assert source.count("class Output(") == 1
    assert "self.output_quantizer" in source and "nn.Identity" not in source


def test_dequantized_vectors_are_parameters_of_float_layers(tmp_path: Path) -> None:
    w = Writer()
    names = (w.stored("norm.weight", 16), w.stored("norm.bias", 16))
    y = w.node("/norm/LN", "n", f"LayerNormalization (x, {', '.join(names)})")
    gate = w.stored("block.gate", 16)
    y = w.node("/block/Mul", "g", f"Mul ({w.rounded(y)}, {gate})")
    table = w.stored("unsqueeze_3", 1, 16)
    y = w.node("/block/Add", "a", f"Add ({y}, {table})")
    w.node("/Neg", "y", f"Neg ({y})")
    source = w.source(tmp_path, "float[n, 16] x", "y", x=normal(3, 16))
    assert "self.norm = nn.LayerNorm(16)" in source
    assert "gate = nn.parameter(16)" in source
    assert "= nn.buffer(1, 16)" in source
    assert "dequantize(" not in source and "dtype=burn.int8" not in source


def test_tables_are_looked_up_in_integers(tmp_path: Path) -> None:
    w = Writer()
    table = w.stored("words.weight", 9, 16)
    y = w.node("/words/Gather", "g", f"Gather ({table}, x)")
    w.node("/Neg", "y", f"Neg ({w.rounded(y)})")
    ids = np.array([0, 8, 3, 3], np.int64)
    source = w.source(tmp_path, "int64[n] x", "y", x=ids)
    assert "self.words = nn.WeightQuantizedEmbedding(" in source
    assert "self.words_quantizer(self.words(x))" in source


def test_calls_with_one_scale_are_calls_of_one_layer(tmp_path: Path) -> None:
    w = Writer()
    a = w.node("/Tanh", "a", "Tanh (x)")
    a = w.rounded(a)
    w.lines += f"b = Relu ({a})\nc = Neg (b)\n"
    w.lines += "e = QuantizeLinear (c, a_scale, a_zero_point)\n"
    w.lines += "f = DequantizeLinear (e, a_scale, a_zero_point)\n"
    w.node("/Sin", "y", "Sin (f)")
    source = w.source(tmp_path, "float[n, 16] x", "y", x=normal(3, 16))
    assert source.count("nn.QuantizeDequantize()") == 1
    assert source.count("self.tanh_quantizer(") == 2


def test_modules_with_the_same_scale_have_layers_of_their_own(tmp_path: Path) -> None:
    w = Writer()
    x = w.rounded("x")
    for i, name in enumerate(("left", "right")):
        weight = w.stored(f"{name}.fc.weight", 16, 16)
        y = w.node(f"/{name}/fc/MatMul", f"m{i}", f"MatMul ({x}, {weight})")
        y = w.node(f"/{name}/Tanh", f"t{i}", f"Tanh ({y})")
        w.lines += f"q{i} = QuantizeLinear ({y}, x_scale, x_zero_point)\n"
        w.lines += f"x{i} = DequantizeLinear (q{i}, x_scale, x_zero_point)\n"
        x = w.node(f"/{name}/Sin", f"s{i}", f"Sin (x{i})")
    w.node("/Neg", "y", f"Neg ({x})")
    source = w.source(tmp_path, "float[n, 16] x", "y", x=normal(3, 16))
    assert source.count("self.tanh_quantizer = nn.QuantizeDequantize()") == 1
    assert source.count("(nn.Module)") == 2


def test_a_rounded_value_that_all_layers_read_is_computed_outside(
    tmp_path: Path,
) -> None:
    w = Writer()
    w.node("/layers.0/Tanh", "c", "Tanh (x)")
    w.weights["layers.0.c_scale"] = np.array(0.012, np.float32)
    w.lines += "c_q = QuantizeLinear (c, layers__0__c_scale)\n"
    w.lines += "c_d = DequantizeLinear (c_q, layers__0__c_scale)\n"
    x = w.rounded("x")
    for i in range(3):
        path = f"layers.{i}"
        weight = w.stored(f"{path}.fc.weight", 16, 16)
        y = w.node(f"/{path}/fc/MatMul", f"m{i}", f"MatMul ({x}, {weight})")
        x = w.rounded(w.node(f"/{path}/Add", f"a{i}", f"Add ({y}, c_d)"))
    w.node("/Neg", "y", f"Neg ({x})")
    source = w.source(tmp_path, "float[n, 16] x", "y", x=normal(3, 16))
    assert "nn.ModuleList(Layer() for _ in range(layers))" in source
    assert "self.tanh_quantizer(ops.tanh(x))" in source


def test_rounded_values_are_named_after_the_operator(tmp_path: Path) -> None:
    w = Writer()
    for name, call in (
        ("neg", "Neg (x)"),
        ("mul", "Mul (x, x)"),
        ("reduce_mean", "ReduceMean <keepdims = 1> (x)"),
    ):
        w.node(f"/{name}", name, call)
        w.weights[f"{name}_scale"] = np.array(0.013, np.float32)
        w.lines += f"{name}_q = QuantizeLinear ({name}, {name}_scale)\n"
        operands = f"{name}_q, {name}_scale"
        w.lines += f"{name}_DequantizeLinear_Output = DequantizeLinear ({operands})\n"
    first, second, third = (
        f"{name}_DequantizeLinear_Output" for name in ("neg", "mul", "reduce_mean")
    )
    w.node("/Add", "add_1", f"Add ({first}, {second})")
    w.node("/Sub", "sub_1", f"Sub ({second}, {third})")
    w.node("/Mul_2", "mul_2", f"Mul ({first}, {third})")
    w.node("/Concat", "y", "Concat <axis = 1> (add_1, sub_1, mul_2, x)")
    source = w.source(tmp_path, "float[n, 16] x", "y", x=normal(3, 16))
    body = source.partition("def __call__")[2]
    assert "self.neg_quantizer(-x)" in body
    assert "product = self.mul_quantizer(x * x)" in body
    assert "rounded" not in body
    assert "quantizer =" not in body
