"""Constructors as syntax trees: fields, parameters and lists of modules."""

import ast

import pytest

from burn_import.codegen import syntax
from burn_import.codegen.class_text import ClassText

FIELDS = [
    "self.conv = nn.Conv2d(3, width, kernel_size=3)",
    "self.skip: nn.Linear | nn.Identity = (nn.Linear(4, 4) if a else nn.Identity())",
    "self.head.weight = self.embedding.weight",
    "self.layers[1].weight = self.layers[0].weight",
]


def call(source: str) -> ast.Call:
    node = ast.parse(source, mode="eval").body
    assert isinstance(node, ast.Call)
    return node


def test_ties_are_no_fields() -> None:
    fields = dict(syntax.fields_of(ClassText("Net", "", FIELDS)))
    assert list(fields) == ["conv", "skip"]
    assert syntax.called_name(fields["conv"]) == "nn.Conv2d"
    assert syntax.called_name(fields["skip"]) == ""


def test_parameters_have_types() -> None:
    signature = ", width: int, windows: tuple[int, int], *, causal: bool = True"
    types = {"width": "int", "windows": "tuple[int, int]", "causal": "bool"}
    assert syntax.parameters_of(signature) == types
    assert syntax.parameters_of("") == {}


@pytest.mark.parametrize(
    ("source", "items", "values"),
    [
        ("nn.Sequential(A(), B())", ["A()", "B()"], ["A()", "B()"]),
        ("nn.ModuleList([A(1), A(2)])", ["A(1)", "A(2)"], ["A(1)", "A(2)"]),
        ("nn.ModuleList([])", [], []),
        ("nn.ModuleList([A()] if a else [])", ["[A()] if a else []"], ["A()"]),
        (
            "nn.ModuleList([A(), *(B() for _ in range(3))])",
            ["A()", "*(B() for _ in range(3))"],
            ["A()", "B()"],
        ),
        (
            "nn.ModuleList(B(i) for i in range(3))",
            ["(B(i) for i in range(3))"],
            ["B(i)"],
        ),
    ],
)
def test_lists(source: str, items: list[str], values: list[str]) -> None:
    modules = call(source)
    assert list(map(ast.unparse, syntax.list_items(modules))) == items
    assert list(map(ast.unparse, syntax.listed_values(modules))) == values


def test_a_generated_item_has_a_loop() -> None:
    (item,) = syntax.list_items(call("nn.Sequential(*(B() for _ in range(depth)))"))
    element, loop = syntax.repetition(item)
    assert syntax.called_name(element) == "B" and loop is not None
    times = syntax.range_call(loop)
    assert times is not None and ast.unparse(times) == "range(depth)"
    assert syntax.repetition(element) == (element, None)


def test_attributes_are_renamed_but_not_those_of_modules_or_in_texts() -> None:
    source = 'y = self.conv(F.conv(x), "é.conv").conv\nz = nn.conv'
    expected = 'y = self._conv(F.conv(x), "é.conv")._conv\nz = nn.conv'
    assert syntax.rename_attributes(source, {"conv": "_conv"}) == expected


def test_calls_without_arguments_are_those_of_local_names() -> None:
    source = "self.x = nn.ModuleTuple(Block(), nn.Identity(), *(Head() for _ in y))"
    calls = syntax.default_calls(source)
    assert {(ast.unparse(call), name) for call, name in calls} == {
        ("Block()", "Block"),
        ("Head()", "Head"),
    }
