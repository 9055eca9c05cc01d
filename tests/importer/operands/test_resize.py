"""Resize with random attributes and operands, stored or given, beside onnxruntime."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from tests.importer.operands.many_nodes import NodeCase, Operand, check
from tests.modules import generate

MODES = ("nearest", "linear", "cubic")
ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
#: Where the result of onnxruntime is that of the specification, for these operands.
PLACES = ("half_pixel", "pytorch_half_pixel", "asymmetric")
SCALES = (0.3, 0.5, 0.6, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0)
#: Scales that 10 times them are whole numbers, if the product is rounded to float32.
ROUNDED = (0.7, 0.9, 1.3, 1.4, 2.1)
COUNT = 60


class Drawn:
    """Random choices of one test."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def one_of(self, values: Any) -> Any:
        return values[int(self.rng.integers(len(values)))]

    def attrs(self, mode: str) -> dict[str, Any]:
        """Attributes that go with a mode."""
        results: dict[str, Any] = {"mode": mode}
        if mode == "nearest":
            results["nearest_mode"] = self.one_of(ROUNDINGS)
            return results
        results["antialias"] = self.one_of((0, 1))
        if mode == "cubic":
            results["exclude_outside"] = self.one_of((0, 1))
            results["cubic_coeff_a"] = self.one_of((-0.75, -0.5))
        return results

    def extents(self) -> tuple[int, int]:
        height, width = self.rng.integers(2, 8, 2)
        return int(height), int(width)

    def operand(self, array: Any) -> Operand:
        return Operand(array, self.one_of((True, False)))

    def image(self, extents: tuple[int, int]) -> Operand:
        numbers = self.rng.normal(size=(1, 2, *extents))
        return Operand(numbers.astype(np.float32))


def scaled(drawn: Drawn) -> NodeCase:
    """A node with scales, of which those that are not 1 change the extent.

    Where the extent is rounded to what it was, onnxruntime leaves the axis as it is.
    """
    extents = drawn.extents()
    scales = [drawn.one_of(SCALES) for _ in extents]
    scales = [
        s if int(s * n) not in (0, n) else 1.0
        for s, n in zip(scales, extents, strict=True)
    ]
    attrs = drawn.attrs(drawn.one_of(MODES))
    attrs["coordinate_transformation_mode"] = drawn.one_of(PLACES)
    axes = drawn.one_of((None, [2, 3], [-2, -1]))
    if axes is None:
        scales = [1.0, 1.0, *scales]
    else:
        attrs["axes"] = axes
    numbers = drawn.operand(np.array(scales, np.float32))
    return NodeCase("Resize", (drawn.image(extents), None, numbers), attrs)


def rounded(drawn: Drawn) -> NodeCase:
    """A node with scales that float32 rounds up to whole extents."""
    numbers = drawn.operand(np.array([drawn.one_of(ROUNDED), 2], np.float32))
    attrs = {"mode": "linear", "axes": [2, 3]}
    return NodeCase("Resize", (drawn.image((10, 3)), None, numbers), attrs)


def sized(drawn: Drawn) -> NodeCase:
    """A node with sizes, perhaps in the old proportions."""
    extents = drawn.extents()
    sizes = drawn.rng.integers(1, 14, 2).tolist()
    attrs = drawn.attrs(drawn.one_of(MODES))
    attrs["coordinate_transformation_mode"] = drawn.one_of((*PLACES, "align_corners"))
    if drawn.one_of((True, False)):
        attrs["axes"] = [2, 3]
        attrs["keep_aspect_ratio_policy"] = drawn.one_of(
            ("stretch", "not_larger", "not_smaller")
        )
    else:
        sizes = [1, 2, *sizes]
    wanted = drawn.operand(np.array(sizes, np.int64))
    return NodeCase("Resize", (drawn.image(extents), None, None, wanted), attrs)


def repeated(drawn: Drawn) -> NodeCase:
    """A node that repeats each element a whole number of times."""
    extents = drawn.extents()
    factors = drawn.rng.integers(1, 5, 2)
    attrs = {
        "nearest_mode": drawn.one_of(ROUNDINGS),
        "coordinate_transformation_mode": drawn.one_of(PLACES),
    }
    image = drawn.image(extents)
    if drawn.one_of((True, False)):
        sizes = np.array([1, 2, *(factors * extents)], np.int64)
        return NodeCase("Resize", (image, None, None, Operand(sizes, True)), attrs)
    scales = np.array([1, 1, *factors], np.float32)
    return NodeCase("Resize", (image, None, Operand(scales, True)), attrs)


def cropped(drawn: Drawn) -> NodeCase:
    """A node that resamples a region, which may reach out of the image."""
    extents = drawn.extents()
    sizes = [n + int(drawn.rng.integers(1, 6)) for n in extents]
    starts = [drawn.one_of((0.0, 0.1, 0.2, -0.1, 0.25)) for _ in extents]
    ends = [drawn.one_of((1.0, 0.8, 1.2, 0.75, 0.9)) for _ in extents]
    region = np.array([0, 0, *starts, 1, 1, *ends], np.float32)
    attrs = drawn.attrs(drawn.one_of(MODES))
    attrs["coordinate_transformation_mode"] = "tf_crop_and_resize"
    attrs["extrapolation_value"] = drawn.one_of((0.0, 9.0))
    wanted = drawn.operand(np.array([1, 2, *sizes], np.int64))
    operands = (drawn.image(extents), drawn.operand(region), None, wanted)
    return NodeCase("Resize", operands, attrs)


@pytest.mark.parametrize("make", [scaled, rounded, sized, repeated, cropped])
def test_resize(tmp_path: Path, make: Any) -> None:
    drawn = Drawn(7)
    check([make(drawn) for _ in range(COUNT)], tmp_path, opset=19)


def test_a_result_at_the_last_element_is_inside(tmp_path: Path) -> None:
    """In float64, 1.4 + 8 * (1.2 - 0.2) * 7 / 10 is more than 7."""
    rng = np.random.default_rng(0)
    x = Operand(rng.normal(size=(1, 2, 6, 8)).astype(np.float32))
    region = np.array([0, 0, 0.1, 0.2, 1, 1, 0.8, 1.2], np.float32)
    attrs = {
        "mode": "linear",
        "coordinate_transformation_mode": "tf_crop_and_resize",
        "extrapolation_value": 9.0,
    }
    sizes, scales = np.array([1, 2, 5, 11]), np.array([1, 1, 1.5, 2], np.float32)
    cases = [
        NodeCase("Resize", (x, Operand(region, stored), *rest), attrs)
        for stored in (True, False)
        for rest in ((None, Operand(sizes, True)), (Operand(scales, True),))
    ]
    check(cases, tmp_path, opset=19)


@pytest.mark.parametrize(
    ("scales", "modes", "printed"),
    [
        ((2, 2), "asymmetric floor", "scales=(2.0, 2.0), axes=(2, 3)"),
        ((1, 3), "half_pixel round_prefer_ceil", "scales=(3.0,), axes=(3,)"),
        ((1, 2.5), "half_pixel round_prefer_floor", "scales=(2.5,), axes=(3,)"),
        ((2.5, 2), "asymmetric floor", "nearest_mode"),
        ((2, 2), "asymmetric ceil", "nearest_mode"),
        ((2, 2), "half_pixel floor", "nearest_mode"),
    ],
)
def test_modes_are_printed_where_they_matter(
    tmp_path: Path, scales: tuple[float, float], modes: str, printed: str
) -> None:
    coordinates, nearest = modes.split()
    node = helper.make_node(
        "Resize",
        ["x", "", "scales"],
        ["y"],
        coordinate_transformation_mode=coordinates,
        nearest_mode=nearest,
    )
    factors = numpy_helper.from_array(np.array([1, 1, *scales], np.float32), "scales")
    value_infos = [
        helper.make_tensor_value_info(name, 1, ["N", 2, height, width])
        for name, height, width in (
            ("x", 4, 4),
            ("y", int(4 * scales[0]), int(4 * scales[1])),
        )
    ]
    graph = helper.make_graph(
        [node], "g", value_infos[:1], value_infos[1:], initializer=[factors]
    )
    opsets = [helper.make_opsetid("", 19)]
    path = tmp_path / "resize.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), path)
    module, _ = generate(path, tmp_path)
    assert printed in module.read_text("utf-8")
