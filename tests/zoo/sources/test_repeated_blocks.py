"""Every repeated block of the zoo's networks is one class.

Classes whose names differ by a number are compared as they are printed, without the
numbers that make their layers and without the names of local values. ``KNOWN`` says how
many classes a model has too many.
"""

import ast
import builtins
import re
from pathlib import Path

import pytest

from tests.written_modules import Modules
from tests.zoo.recorded import zoo_cases

#: Names in a body that mean the same everywhere.
FIXED = {"self", "nn", "ops", "burn", "math", "Tensor", *dir(builtins)}
KNOWN: dict[str, int] = {}
#: Of so many networks a plain run compares one.
STEP = 8


class Blocks:
    """The classes of one module, numbered by what they are but for numbers."""

    def __init__(self, text: str) -> None:
        self.classes = {
            node.name: node
            for node in ast.parse(text).body
            if isinstance(node, ast.ClassDef)
            and ast.unparse(node.bases[0]) != "NamedTuple"
        }
        self.numbers: dict[str, int] = {}
        self.known: dict[str, str] = {}

    def number(self, name: str) -> str:
        """Return the same for classes of the same structure."""
        if name not in self.known:
            self.known[name] = ""  # nothing holds itself
            shown = [self.method(m) for m in self.classes[name].body]
            key = "\n".join([re.sub(r"V?\d+$", "", name), *shown])
            index = self.numbers.setdefault(key, len(self.numbers))
            self.known[name] = f"class {index}"
        return self.known[name]

    def method(self, node: ast.stmt) -> str:
        """Return a method without numbers of layers and names of values."""
        if not isinstance(node, ast.FunctionDef):
            return ""
        if node.name == "__init__":
            return "\n".join(self.made(line) for line in node.body)
        renamed = Renamed()
        return "\n".join([ast.dump(renamed.visit(line)) for line in node.body])

    def made(self, node: ast.AST) -> str:
        """Return a field, of whose calls only the functions show."""
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            inner = [self.made(arg) for arg in node.args if holds_calls(arg)]
            name = self.number(name) if name in self.classes else name
            return f"{name}({inner})"
        if isinstance(node, ast.Attribute | ast.Name):
            return ast.unparse(node)
        return str([self.made(child) for child in ast.iter_child_nodes(node)])

    def repeated(self) -> int:
        """Return how many classes could be one of the others."""
        return len(self.classes) - len({self.number(name) for name in self.classes})


def holds_calls(node: ast.AST) -> bool:
    """Return whether a module is made in an argument."""
    return any(isinstance(inner, ast.Call) for inner in ast.walk(node))


class Renamed(ast.NodeTransformer):
    """Names of values by the order in which they come."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}

    def visit_Name(self, node: ast.Name) -> ast.Name:  # noqa: N802
        if node.id not in FIXED:
            new = self.names.setdefault(node.id, f"v{len(self.names)}")
            return ast.Name(new, node.ctx)
        return node


def test_equal_blocks_are_one_class(
    request: pytest.FixtureRequest, modules: Modules
) -> None:
    zoo: Path = request.config.getoption("--zoo")
    if not (zoo / "manifest.json").is_file():
        pytest.skip("the zoo is not here")
    networks = [case for case in zoo_cases(zoo) if case.name.startswith("arch/")]
    step = 1 if request.config.getoption("--all-cases") else STEP
    results = {
        case.name: Blocks(modules.text(case.path)).repeated()
        for case in networks[::step]
    }
    more = {name: n for name, n in results.items() if n > KNOWN.get(name, 0)}
    assert more == {}


LAYER = """
class {name}(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d({wide}, {wide}, kernel_size=3)

    def __call__(self, x: Tensor) -> Tensor:
        {local} = self.conv(x)
        return ops.{function}({local})
"""


@pytest.mark.parametrize(("function", "repeated"), [("relu", 1), ("silu", 0)])
def test_numbers_and_names_make_no_other_block(function: str, repeated: int) -> None:
    one = LAYER.format(name="Block", wide=8, local="y", function="relu")
    two = LAYER.format(name="Block2", wide=16, local="z", function=function)
    assert Blocks(one + two).repeated() == repeated
