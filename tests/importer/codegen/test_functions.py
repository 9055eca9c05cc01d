"""Local functions of a model are functions of the module if they own no weights."""

from pathlib import Path

import pytest

from tests.importer.looped import check, normal

SOFT = """
<domain: "local", opset_import: ["" : 18]>
Sharpen (a) => (c) {
  s = Sin (a)
  m = Mul (s, a)
  e = Exp (m)
  t = Tanh (e)
  d = Sub (t, a)
  c = Cos (d)
}
"""
FEEDS = [{"x": normal(n, 4)} for n in (1, 3)]


def imported(folder: Path, lines: str, functions: str = SOFT) -> str:
    """Return the source of a model, checked against onnxruntime at two sizes."""
    text = f"agraph (float[n, 4] x) => (float[n, 4] y) {{\n{lines}}}\n{functions}"
    return check(folder, text, *FEEDS)


def test_a_function_is_a_function(tmp_path: Path) -> None:
    lines = "u = local.Sharpen (x)\nv = Sub (u, x)\ny = local.Sharpen (v)\n"
    source = imported(tmp_path, lines)
    assert "def sharpen(x: Tensor) -> Tensor:\n" in source
    assert "return sharpen(sharpen(x) - x)" in source
    assert "class Sharpen" not in source
    assert "self.sharpen" not in source


def test_a_function_with_weights_is_none(tmp_path: Path) -> None:
    weights = ", ".join(str(i / 8) for i in range(16))
    layer = f"  w = Constant <value = float[4, 4] {{{weights}}}> ()\n"
    own = SOFT.replace("  c = Cos (d)\n", f"{layer}  c = MatMul (d, w)\n")
    source = imported(tmp_path, "u = local.Sharpen (x)\ny = Sub (u, x)\n", own)
    assert "nn.Linear(4, 4, bias=False)" in source
    assert "def sharpen" not in source


@pytest.mark.parametrize("name", ["sharpen", "Sharpen"])
def test_a_value_of_the_same_name_stays(tmp_path: Path, name: str) -> None:
    text = "agraph (float[n, 4] {0}) => (float[n, 4] y) {{\n u = local.Sharpen ({0})\n"
    text = f"{text.format(name)} y = Sub (u, {name})\n}}\n{SOFT}"
    source = check(tmp_path, text, *({name: feed["x"]} for feed in FEEDS))
    assert "class Sharpen(nn.Module):" in source


def test_a_call_from_outside_of_its_scope(tmp_path: Path) -> None:
    """A module in a list owns the function, and the model calls it."""
    weights = ", ".join(str(i / 16) for i in range(16))
    lines = f"""
        w = Constant <value = float[4, 4] {{{weights}}}> ()
        ["/block.0/Sharpen_1"] u = local.Sharpen (x)
        ["/block.0/Tanh"] v = Tanh (u)
        ["/block.1/MatMul"] b = MatMul (v, w)
        ["/block.0/Sharpen_2"] y = local.Sharpen (b)
    """
    source = imported(tmp_path, lines)
    assert "def sharpen" not in source or "self.block" not in source


@pytest.mark.parametrize("scope", ["self", "part/self", "ops"])
def test_calls_in_a_scope_that_is_called_self(tmp_path: Path, scope: str) -> None:
    """A module without own code owns the function, and the model calls it."""
    weights = ", ".join(str(i / 16) for i in range(16))
    lines = f"""
        w = Constant <value = float[4, 4] {{{weights}}}> ()
        ["/{scope}/Sharpen_1"] u = local.Sharpen (x)
        ["/Tanh"] v = Tanh (u)
        ["/other/MatMul"] b = MatMul (v, w)
        ["/{scope}/Sharpen_2"] y = local.Sharpen (b)
    """
    source = imported(tmp_path, lines)
    assert "self.Sharpen_1(x)" in source
    assert "class Sharpen(nn.Module):" in source
