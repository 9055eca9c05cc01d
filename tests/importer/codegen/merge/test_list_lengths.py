"""Classes that differ in list lengths, or in the windows of an operator."""

from pathlib import Path

import numpy as np

from burn_import.codegen.merge.list_calls import list_call
from burn_import.tracing.trace import Block, Members, ModuleCall, Repetition, Tracer
from burn_ir.dim import symbol
from tests.importer.codegen.merge.test_families import Layers, gemm, imported
from tests.importer.looped import check, normal
from tests.modules import Array


def stage(number: int, widths: list[int], value: str) -> tuple[str, Layers, str]:
    """Return the lines of blocks of these widths, their layers, and the result."""
    lines, layers = "", Layers()
    for block, width in enumerate(widths):
        path, name = f"stages.{number}.blocks.{block}", f"{number}_{block}"
        layers |= {f"{path}.fc1": (4, width), f"{path}.fc2": (width, 4)}
        lines += gemm(f"h{name}", f"{path}.fc1", value) + f"r{name} = Relu (h{name})\n"
        value = f"g{name}"
        lines += gemm(value, f"{path}.fc2", f"r{name}")
    layers[f"stages.{number}.end"] = (4, 4)
    lines += gemm(f"e{number}", f"stages.{number}.end", value)
    return lines, layers, f"e{number}"


def stages(folder: Path, *widths: list[int]) -> str:
    """Return the source of a model of stages with blocks of these widths."""
    lines, value = "v0 = Tanh (x)\n", "v0"
    layers = Layers()
    for number, own in enumerate(widths):
        more, held, value = stage(number, own, value)
        lines, layers = lines + more, layers | held
    return imported(folder, lines + f"z = Tanh (x)\ny = Sub ({value}, z)\n", layers)


def test_a_list_of_one_module_is_one_of_depth_1(tmp_path: Path) -> None:
    source = stages(tmp_path, [6], [6, 6])
    assert "nn.Sequential(Stage(1), Stage(2))" in source
    assert "Block() for _ in range(depth)" in source
    assert "for block in self.blocks:" in source


def test_modules_behind_a_first_one_are_counted(tmp_path: Path) -> None:
    source = stages(tmp_path, [6], [8, 4], [8, 4, 4])
    assert "*(Block(features // 2) for _ in range(depth - 1))" in source
    assert "Stage(8, 3)" in source


def test_a_list_that_some_lack_is_empty(tmp_path: Path) -> None:
    lines, value = "v0 = Tanh (x)\n", "v0"
    layers = Layers()
    for number in range(2):
        more, held, value = stage(number, [6], value)
        lines, layers = lines + more, layers | held
        if number == 0:
            path = "stages.0.downs.0"
            layers |= {f"{path}.fc1": (4, 5), f"{path}.fc2": (5, 4)}
            lines += gemm("dh", f"{path}.fc1", value) + "dr = Softsign (dh)\n"
            lines += gemm("dg", f"{path}.fc2", "dr")
            value = "dg"
    lines += f"z = Tanh (x)\ny = Sub ({value}, z)\n"
    source = imported(tmp_path, lines, layers)
    assert "self.downs = nn.ModuleList([Down()] if downs else [])" in source
    assert "for down in self.downs:" in source
    assert source.count("class Stage") == 1


def convolution(name: str, target: str, options: str) -> str:
    """Return the lines of an integer convolution of ``x`` with a bias."""
    weights = f"{name}__weight"
    return f"""
        ["/{name}/Conv"] {target}a = ConvInteger {options} (x, {weights})
        ["/{name}/Cast"] {target}b = Cast <to = 1> ({target}a)
        ["/{name}/Add"] {target} = Add ({target}b, {name}__bias)"""


def test_strides_are_given(tmp_path: Path) -> None:
    first = convolution("c1", "y", "<pads = [1, 1, 1, 1], strides = [2, 2]>")
    second = convolution("c2", "z", "")
    results = "float[n, 4, 4, 4] y, float[n, 4, 6, 6] z"
    text = f"agraph (uint8[n, 4, 8, 8] x) => ({results}) {{{first}{second}\n}}"
    weights: dict[str, Array] = {}
    for seed, name in enumerate(("c1", "c2")):
        numbers = normal(4, 4, 3, 3, seed=seed) * 20 + 100
        weights[f"{name}.weight"] = numbers.astype(np.uint8)
        weights[f"{name}.bias"] = normal(1, 4, 1, 1, seed=seed)
    feed = {"x": (normal(1, 4, 8, 8, seed=2) * 20 + 100).astype(np.uint8)}
    source = check(tmp_path, text, feed, weights=weights)
    assert "stride=self.stride, padding=self.padding" in source
    assert "class Conv(nn.Module):" in source
    assert source.count("(nn.Module)") == 2


def test_a_loop_that_only_collects_results_is_no_chain() -> None:
    """``results.append(layer(x))`` for each layer carries no value."""
    tracer = Tracer()
    x, result = tracer.symbol(None), tracer.symbol(None)
    call = ModuleCall(("layers", "0"), (x,), [result.data])
    loop = Repetition(
        None,
        symbol("step"),
        [],
        [],
        Block([call], [result]),
        "",
        [tracer.symbol(None).data],
        [],
        [Members(("layers",), 0, 2, 2)],
    )
    assert list_call(loop) is None
