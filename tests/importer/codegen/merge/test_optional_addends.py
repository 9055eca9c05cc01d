"""Sums of branches of which each block has some are one class."""

from pathlib import Path

import pytest

from tests.importer.codegen.merge.test_families import Layers, gemm, linear
from tests.importer.looped import check, normal

BRANCHES = ("vertical", "horizontal", "identity")


def summed(folder: Path, having: list[str]) -> str:
    """Return the source of blocks that add the results of the named branches."""
    lines, layers = "v0 = Tanh (x)\n", Layers()
    for i, names in enumerate(having):
        total = f"main{i}"
        layers[f"blocks.{i}.main"] = (4, 4)
        lines += gemm(total, f"blocks.{i}.main", f"v{i}")
        for name in (one for one in BRANCHES if one[0] in names):
            layers[f"blocks.{i}.{name}"] = (4, 4)
            lines += gemm(f"{name}{i}", f"blocks.{i}.{name}", f"v{i}")
            lines += f"sum_{name}{i} = Add ({total}, {name}{i})\n"
            total = f"sum_{name}{i}"
        lines += f"v{i + 1} = Relu ({total})\n"
    lines += f"z = Tanh (x)\ny = Sub (v{len(having)}, z)\n"
    text = f"agraph (float[n, 4] x) => (float[n, 4] y) {{\n{lines}}}"
    feeds = [{"x": normal(n, 4, seed=n)} for n in (1, 3)]
    return check(folder, text, *feeds, weights=linear(layers))


@pytest.mark.parametrize(
    "having", [["vhi", "vh", "h", "vi"], ["vhi", "vi", "vh", "hi"], ["vhi", "vhi", ""]]
)
def test_each_branch_has_a_condition(tmp_path: Path, having: list[str]) -> None:
    source = summed(tmp_path, having)
    assert source.count("(nn.Module)") == 2
    for name in BRANCHES:
        assert f"if self.{name} is not None" in source
        assert f" + self.{name}(" in source


def test_other_addends_are_another_class(tmp_path: Path) -> None:
    """Neither block has all the branches."""
    assert summed(tmp_path, ["v", "h"]).count("(nn.Module)") == 3


def viewed(folder: Path, having: tuple[bool, ...]) -> str:
    """Return the source of blocks of which some transpose for another layer."""
    lines, layers = "v0 = Tanh (x)\n", Layers()

    def dense(target: str, path: str, source: str) -> str:
        name, scope = path.replace(".", "__"), path.replace(".", "/")
        return (
            f'["/{scope}/MatMul"] {target}_ = MatMul ({source}, {name}__weight)\n'
            f'["/{scope}/Add"] {target} = Add ({target}_, {name}__bias)\n'
        )

    for i, has in enumerate(having):
        layers[f"blocks.{i}.fc"] = (4, 4)
        lines += dense(f"h{i}", f"blocks.{i}.fc", f"v{i}")
        lines += f'["/blocks.{i}/Relu"] r{i} = Relu (h{i})\n'
        last = f"r{i}"
        if has:
            layers[f"blocks.{i}.down"] = (4, 4)
            lines += f'["/blocks.{i}/T"] t{i} = Transpose <perm = [0, 2, 1]> (r{i})\n'
            lines += dense(f"d{i}", f"blocks.{i}.down", f"t{i}")
            last = f"d{i}"
        lines += f'["/Neg_{i}"] v{i + 1} = Neg ({last})\n'
    lines += f"z = Tanh (x)\ny = Sub (v{len(having)}, z)\n"
    text = f"agraph (float[n, 4, 4] x) => (float[n, 4, 4] y) {{\n{lines}}}"
    feeds = [{"x": normal(n, 4, 4, seed=n)} for n in (1, 3)]
    return check(folder, text, *feeds, weights=linear(layers))


@pytest.mark.parametrize("having", [(True, False), (True, True, False)])
def test_views_belong_to_the_layer_behind_them(
    tmp_path: Path, having: tuple[bool, ...]
) -> None:
    source = viewed(tmp_path, having)
    assert source.count("(nn.Module)") == 2
    assert "if self.down is not None" in source
    assert "nn.Identity()" not in source
