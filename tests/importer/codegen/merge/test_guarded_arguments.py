"""Constructor arguments that a class does not read where another one is None."""

import pytest

from burn_import.codegen.merge.constructor_parameters import constructor
from burn_import.codegen.merge.constructors import Constructor
from burn_import.codegen.merge.expression_slots import MISSING, DifferError
from burn_import.codegen.merge.init_fields import Column, Field, unite_fields

#: Attention whose keys are reduced by patches, where the images are large enough.
ATTENTION = {"Attention": ["features", "patch_size", "size"]}
GUARDS = {"Attention": {"size": "patch_size"}}


def layer(*lines: list[str]) -> Constructor:
    """Return the constructor of a class that merges those with ``lines``."""
    columns: list[Column] = []
    fields = unite_fields(lines, ATTENTION, columns, GUARDS)
    return constructor(columns, fields)


def attention(features: int, patch_size: int | None, size: int) -> str:
    """Return the assignment of an attention."""
    arguments = f"{features}, patch_size={patch_size}, size={size}"
    return f"self.attention = Attention({arguments})"


def test_one_number_tells_who_has_a_module_and_others_are_not_read() -> None:
    columns = [
        Column((8, 16, 32), "features", "linear"),
        Column((4, 2, MISSING), "kernel_size", "reduction"),
        Column((4, 2, MISSING), "stride", "reduction"),
        Column((9, 5, MISSING), "size", "reduction"),
    ]
    result = constructor(columns, [Field("reduction", "", (True, True, False))])
    assert result.signature == (", features: int, patch_size: int | None, size: int")
    assert result.conditions == {"reduction": "patch_size is not None"}
    assert result.guards == {"size": "patch_size"}
    assert result.call("Attention", 2) == "Attention(32, patch_size=None, size=0)"


def test_a_number_that_is_not_read_follows_from_another() -> None:
    lines = [
        [attention(8, 4, 9), "self.mlp = nn.Embedding(9, 64)"],
        [attention(16, 2, 5), "self.mlp = nn.Embedding(5, 64)"],
        [attention(32, None, 0), "self.mlp = nn.Embedding(3, 64)"],
    ]
    result = layer(*lines)
    assert len(result.parameters) == 3
    assert result.texts[2] == result.texts[3]
    assert result.guards == {}
    assert [p.values for p in result.parameters if p.name == result.texts[2]] == [
        (9, 5, 3)
    ]


def test_a_number_that_nobody_else_has_stays_unread_in_the_layer() -> None:
    lines = [[attention(8, 4, 9)], [attention(16, 2, 5)], [attention(32, None, 0)]]
    result = layer(*lines)
    assert result.signature == ", features: int, patch_size: int | None, size: int"
    assert result.guards == {"size": "patch_size"}
    assert result.call("Layer", 2) == "Layer(32, patch_size=None, size=0)"


def test_a_number_is_no_parameter_where_all_who_read_it_agree() -> None:
    lines = [[attention(8, 4, 9)], [attention(8, 2, 9)], [attention(8, None, 0)]]
    result = layer(*lines)
    assert result.texts == ["8", "patch_size", "9"]


def test_a_number_that_nobody_reads_is_unchanged() -> None:
    result = layer([attention(8, None, 0)], [attention(16, None, 0)])
    assert result.signature == ", features: int"


def test_an_extent_of_code_that_only_some_run() -> None:
    """Others get 0, or what equals the extent elsewhere."""
    columns = [
        Column((8, 16, 32), "features", "linear"),
        Column((4, 2, MISSING), "kernel_size", "reduction"),
        Column((4, 2, MISSING), "stride", "reduction"),
        Column((9, 5, MISSING), "size", "", derived=True),
    ]
    fields = [
        Field("norm", "", (True, True, False)),
        Field("reduction", "", (True, True, False)),
    ]
    result = constructor(columns, fields)
    assert result.signature == ", features: int, patch_size: int | None, size: int"
    assert result.guards == {"size": "patch_size"}
    assert result.call("Attention", 2) == "Attention(32, patch_size=None, size=0)"
    condition = "patch_size is not None"
    assert result.conditions == {"reduction": condition, "norm": condition}


def test_a_number_of_optional_code_that_is_no_extent_must_follow() -> None:
    columns = [
        Column((8, 16, 32), "features", "linear"),
        Column((9, 5, MISSING), "width", "", derived=True),
    ]
    with pytest.raises(DifferError):
        constructor(columns, [])


def test_a_number_that_one_reads_where_the_other_does_not() -> None:
    """Callers may pass any number only where no layer reads it."""
    columns = [
        Column((4, 2, MISSING), "kernel_size", "reduction"),
        Column((4, 2, MISSING), "stride", "reduction"),
        Column((9, 5, MISSING), "size", "", derived=True),
        Column((9, MISSING, 0), "size", "", derived=True),
    ]
    result = constructor(columns, [Field("reduction", "", (True, True, False))])
    assert result.texts[2:] == ["size", "size"]
    assert result.guards == {}


@pytest.mark.parametrize("field", ["", "table"])
def test_a_number_of_optional_code_that_others_read(field: str) -> None:
    """Two pieces of optional code, or one and a table, have one number."""
    columns = [
        Column((4, 2, MISSING, MISSING), "kernel_size", "reduction"),
        Column((4, 2, MISSING, MISSING), "stride", "reduction"),
        Column((8, 4, 2, MISSING), "size", field, derived=not field),
        Column((8, 4, MISSING, MISSING), "size", "", derived=True),
    ]
    fields = [Field("reduction", "", (True, True, False, False))]
    fields += [Field(field, "", (True, True, True, False))] if field else []
    result = constructor(columns, fields)
    assert result.guards == {}
    assert all(result.conditions.values())
    assert result.call("Attention", 2) == "Attention(None, 2)"


def test_a_number_that_a_module_reads_too_is_not_unread() -> None:
    """The third class has a table of three rows, and no reduction."""
    columns = [
        Column((4, 2, MISSING, MISSING), "kernel_size", "reduction"),
        Column((4, 2, MISSING, MISSING), "stride", "reduction"),
        Column((8, 4, 3, MISSING), "size", "table"),
        Column((8, 4, MISSING, MISSING), "size", "", derived=True),
    ]
    fields = [
        Field("reduction", "", (True, True, False, False)),
        Field("table", "", (True, True, True, False)),
    ]
    result = constructor(columns, fields)
    assert "size" not in result.guards
    assert result.call("Attention", 2) == "Attention(None, 3)"
