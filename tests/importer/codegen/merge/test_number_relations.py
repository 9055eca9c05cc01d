"""Numbers of merged classes follow from others where a person would derive them."""

import numpy as np
import pytest

from burn_import.codegen.merge.constructor_parameters import constructor
from burn_import.codegen.merge.expression_slots import MISSING
from burn_import.codegen.merge.init_fields import Column, Field


def texts(*columns: tuple[str, tuple[object, ...]]) -> list[str]:
    """Return the sources of columns with these labels and values."""
    return constructor([Column(v, label, "f") for label, v in columns], []).texts


def test_tables_of_relative_positions_follow_from_a_size() -> None:
    columns = [("size", (7, 15)), ("size", (4, 8)), ("size", (16, 64))]
    assert texts(*columns) == ["2 * size - 1", "size", "size**2"]


def test_a_small_offset_between_three_widths() -> None:
    rows = [("in_features", (16, 32, 64)), ("out_features", (35, 67, 131))]
    assert texts(*rows) == ["in_features", "2 * in_features + 3"]
    assert texts(*[(label, row[:2]) for label, row in rows])[1] == "out_features"


def test_widths_that_grow_evenly_are_not_related() -> None:
    rows = [("in_channels", (16, 24, 32)), ("out_channels", (16, 32, 48))]
    assert texts(*rows) == ["in_channels", "out_channels"]


def test_scales_are_roots_where_float32_rounds_both_to_one_number() -> None:
    rounded = tuple(np.float32(v**-0.5) for v in (24, 32))
    scaled = texts(("in_features", (24, 32)), ("scale", rounded))
    assert scaled == ["in_features", "in_features**-0.5"]
    halves = tuple(np.float32(v**-0.5) for v in (12, 8))
    columns = [("in_features", (24, 32)), ("heads", (2, 4)), ("scale", halves)]
    assert texts(*columns)[2] == "(in_features // heads)**-0.5"
    wide = tuple(map(float, rounded))
    assert texts(("in_features", (24, 32)), ("scale", wide))[1] == "scale"
    result = constructor([Column(rounded, "scale", "")], [])
    assert result.call("Block", 0) == "Block(0.20412415)"


def test_a_packed_width_is_three_widths() -> None:
    columns = [("in_features", (96, 192)), ("out_features", (32, 64))]
    assert texts(*columns) == ["3 * out_features", "out_features"]


def test_sizes_are_numbered_in_their_order() -> None:
    columns = [Column(v, "size", "") for v in ((9, 8), (5, 6), (4, 9))]
    result = constructor(columns, [])
    assert result.signature == ", size: int, size2: int, size3: int"
    assert result.call("Block", 0) == "Block(size=9, size2=5, size3=4)"


def test_channels_are_not_compared_with_extents() -> None:
    rows = {"in_channels": (16, 16, 32), "width": (16, 8, 4)}
    columns = [Column(row, label, "conv") for label, row in rows.items()]
    down = Field("down", "nn.ReLU()", (False, True, True))
    assert constructor(columns, [down]).conditions == {"down": "down"}


def test_only_the_two_widths_of_an_optional_layer_are_compared() -> None:
    width = Column((16, 24, 32), "in_channels", "conv")
    other = Column((20, 40, MISSING), "out_channels", "down")
    down = Field("down", "nn.ReLU()", (True, True, False))
    own = Column((16, 24, MISSING), "in_channels", "down")
    compared = constructor([width, own, other], [down])
    assert compared.conditions == {"down": "out_channels != in_channels"}
    alone = constructor([width, other], [down])
    assert alone.conditions == {"down": "out_channels is not None"}


def test_kernels_of_one_row_follow_from_a_kernel() -> None:
    columns = [
        ("kernel_size", (3, (3, 1), (1, 5))),
        ("padding", (1, (1, 0), (0, 2))),
        ("kernel_size", ((1, 3), 1, (1, 5))),
        ("padding", ((0, 1), (0, 0), MISSING)),
    ]
    assert texts(*columns) == [
        "kernel_size",
        "(kernel_size[0] // 2, kernel_size[1] // 2)",
        "(1, kernel_size[1])",
        "(0, kernel_size[1] // 2)",
    ]


def test_borders_that_differ_at_both_ends_stay_beside_one_number() -> None:
    result = constructor([Column((1, ((0, 1), (0, 1))), "padding", "f")], [])
    assert result.signature == ", padding: int | tuple[tuple[int, int], ...]"


@pytest.mark.parametrize(
    ("having", "condition"),
    [((True, False, True), "kernel_size[1] != 1"), ((True, False, False), "branch")],
)
def test_a_branch_for_kernels_of_several_columns(
    having: tuple[bool, ...], condition: str
) -> None:
    kernels = Column(((3, 3), (3, 1), (1, 5)), "kernel_size", "conv")
    branch = Field("branch", "nn.ReLU()", having)
    assert constructor([kernels], [branch]).conditions == {"branch": condition}
