"""Quantized layers that differ only in scales and zero points share a class."""

from pathlib import Path

import numpy as np

from tests.importer.looped import check, normal
from tests.modules import Array


def quantized(folder: Path, points: tuple[int, ...], dtype: type) -> str:
    """Return the source of a quantized layer for each zero point."""
    weights: dict[str, Array] = {}
    lines = "v0 = Tanh (x)\n"
    for i, point in enumerate(points):
        weights |= {f"layers.{i}.fc.weight": normal(4, 4, seed=i) / 2}
        weights |= {f"s{i}": np.array(0.0123 + 0.0017 * i, np.float32)}
        weights |= {f"z{i}": np.array(point, dtype)}
        path = f"/layers.{i}"
        lines += f'["{path}/MatMul"] m{i} = MatMul (v{i}, layers__{i}__fc__weight)\n'
        lines += f'["{path}/Q"] q{i} = QuantizeLinear (m{i}, s{i}, z{i})\n'
        lines += f'["{path}/DQ"] d{i} = DequantizeLinear (q{i}, s{i}, z{i})\n'
        lines += f'["{path}/Relu"] v{i + 1} = Relu (d{i})\n'
    lines += f'["/last/Tanh"] y = Tanh (v{len(points)})\n'
    text = f"agraph (float[n, 4] x) => (float[n, 4] y) {{\n{lines}}}"
    return check(folder, text, {"x": normal(3, 4)}, weights=weights)


def test_scales_and_zero_points_are_in_the_record(tmp_path: Path) -> None:
    source = quantized(tmp_path, (120, 131, 127), np.uint8)
    assert source.count("(nn.Module)") == 2
    assert "nn.ModuleList(Layer() for _ in range(layers))" in source
    assert "self.fc_quantizer = nn.QuantizeDequantize()" in source
    assert "ops.relu(self.fc_quantizer(self.fc(x)))" in source


def test_zero_points_of_symmetric_quantization_are_not(tmp_path: Path) -> None:
    source = quantized(tmp_path, (0, 0), np.int8)
    assert source.count("(nn.Module)") == 2
    assert "QuantizeDequantize(burn.int8, zero_point=False)" in source


def test_layers_quantize_their_own_input(tmp_path: Path) -> None:
    weights: dict[str, Array] = {"z": np.array(0, np.uint8)}
    lines = '["/embed/Tanh"] v0 = Tanh (x)\n'
    before = "/embed"
    for i in range(3):
        weights |= {f"layers.{i}.fc.weight": (normal(4, 4, seed=i) ** 2 * 20 + 1)}
        weights[f"layers.{i}.fc.weight"] = weights[f"layers.{i}.fc.weight"].astype("u1")
        path, weight = f"/layers.{i}", f"layers__{i}__fc__weight"
        lines += f'["{before}/DQL"] q{i}, s{i}, z{i} = DynamicQuantizeLinear (v{i})\n'
        lines += f'["{path}/M"] m{i} = MatMulInteger (q{i}, {weight}, z{i}, z)\n'
        lines += f'["{path}/C"] c{i} = Cast <to = 1> (m{i})\n'
        lines += f'["{path}/S"] p{i} = Mul (c{i}, s{i})\n'
        lines += f'["{path}/A"] a{i} = Tanh (p{i})\nv{i + 1} = Add (a{i}, v{i})\n'
        before = path
    text = f"agraph (float[n, 4] x) => (float[n, 4] y) {{\n{lines}y = Neg (v3)\n}}"
    source = check(tmp_path, text, {"x": normal(3, 4)}, weights=weights)
    assert "nn.ModuleList(Layer() for _ in range(layers))" in source
    assert "= layer(x)" in source


def test_dynamically_quantized_products_are_layers(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    weights: dict[str, Array] = {}
    lines = '["/embed/Tanh"] v0 = Tanh (x)\n'
    for i in range(3):
        key = f"layers.{i}.fc"
        weights[f"{key}.weight_quantized"] = rng.integers(-99, 99, (4, 4)).astype("i1")
        weights[f"{key}.weight_scale"] = np.full(4, 0.01 + i / 500, np.float32)
        weights[f"{key}.bias"] = normal(4, seed=i)
        path, name = f"/layers.{i}/fc", f"layers__{i}__fc__"
        product = f"MatMulInteger (q{i}, {name}weight_quantized, z{i})"
        lines += f'["/q{i}"] q{i}, s{i}, z{i} = DynamicQuantizeLinear (v{i})\n'
        lines += f'["{path}/MatMul_quant"] m{i} = {product}\n'
        lines += f'["c{i}"] c{i} = Cast <to = 1> (m{i})\n'
        lines += f'["f{i}"] f{i} = Mul (s{i}, {name}weight_scale)\n'
        lines += f'["{path}/Mul"] p{i} = Mul (c{i}, f{i})\n'
        lines += f'["{path}/Add"] a{i} = Add ({name}bias, p{i})\n'
        lines += f'["/layers.{i}/Relu"] v{i + 1} = Relu (a{i})\n'
    text = f"agraph (float[n, 4] x) => (float[n, 4] y) {{\n{lines}y = Neg (v3)\n}}"
    source = check(tmp_path, text, {"x": normal(3, 4)}, weights=weights)
    assert "self.fc = nn.DynamicQuantizedLinear(4, 4, per_channel=True)" in source
    assert "nn.buffer" not in source and "ops.quantize" not in source


def test_products_with_packed_weights_are_layers(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    weights: dict[str, Array] = {}
    lines = '["/embed/Tanh"] v0 = Tanh (x)\n'
    sizes = "<K = 16, N = 16, bits = 4, block_size = 16>"
    for i in range(3):
        key, name = f"layers.{i}.fc.weight", f"layers__{i}__fc__weight"
        weights[f"{key}_Q4"] = rng.integers(0, 255, (16, 1, 8)).astype("u1")
        weights[f"{key}_scales"] = np.abs(normal(16, seed=i)) / 9
        operands = f"(v{i}, {name}_Q4, {name}_scales)"
        lines += f'["/layers.{i}/fc/MatMul_Q4"] m{i} = com.microsoft.MatMulNBits '
        lines += f'{sizes} {operands}\n["/layers.{i}/Relu"] v{i + 1} = Relu (m{i})\n'
    text = f"agraph (float[n, 16] x) => (float[n, 16] y) {{\n{lines}y = Neg (v3)\n}}"
    source = check(tmp_path, text, {"x": normal(3, 16)}, weights=weights)
    assert "self.fc = nn.QuantizedLinear(16, 16, bias=False, block_size=16)" in source
    assert "nn.buffer" not in source
