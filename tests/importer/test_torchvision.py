"""Operators of torchvision in programs of both formats, which are made by hand."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn import ops
from burn_import import load
from burn_ir.types import Array
from tests.importer.aten.programs import argument
from tests.importer.exported_files import meta, program, ref, saved
from tests.importer.script_files import example, net

RNG = np.random.default_rng(3)
IMAGE = RNG.normal(size=(2, 8, 9, 7)).astype(np.float32)
CORNERS = np.sort(RNG.uniform(0, 14, (5, 2, 2)), 1).reshape(5, 4)
REGIONS = np.concatenate([[[0], [1], [1], [0], [1]], CORNERS], 1).astype(np.float32)
WEIGHT = RNG.normal(size=(4, 4, 3, 3)).astype(np.float32)
OFFSETS = RNG.normal(size=(2, 36, 9, 7)).astype(np.float32)
MASK = RNG.uniform(0, 1, (2, 18, 9, 7)).astype(np.float32)
BIAS = RNG.normal(size=4).astype(np.float32)


def aligned(x: Any, rois: Any, **options: Any) -> Any:
    return ops.roi_align(
        x, rois[:, 1:], rois[:, 0].cast(burn.int64), spatial_scale=0.5, **options
    )


def by_place(x: Any, rois: Any) -> Array:
    """Return what each bin has of its own channels."""
    results = aligned(x, rois, output_size=(2, 2), sampling_ratio=2).numpy()
    parts = results.reshape(len(results), 2, 2, 2, 2, 2)
    return np.asarray(np.einsum("kcijij->kcij", parts))


def deformed(*given: Any) -> Any:
    x, weight, offset, mask, bias = given
    options = {"padding": 1, "groups": 2, "offset_groups": 2}
    return ops.deform_conv(x, weight, offset, bias, mask, **options)


DEFORM: list[Any] = [1, 1, 1, 1, 1, 1, 2, 2, True]
CASES: dict[str, tuple[str, Sequence[Array], list[Any], Any]] = {
    "roi_align": (
        "roi_align",
        [IMAGE, REGIONS],
        [0.5, 3, 2, 2, False],
        lambda x, r: aligned(x, r, output_size=(3, 2), sampling_ratio=2, aligned=False),
    ),
    "roi_align aligned": (
        "roi_align",
        [IMAGE, REGIONS],
        [0.5, 2, 2, -1, True],
        lambda x, r: aligned(x, r, output_size=(2, 2)),
    ),
    "ps_roi_align": ("ps_roi_align", [IMAGE, REGIONS], [0.5, 2, 2, 2], by_place),
    "deform_conv2d": (
        "deform_conv2d",
        [IMAGE, WEIGHT, OFFSETS, MASK, BIAS],
        DEFORM,
        deformed,
    ),
}


def exported(folder: Path, name: str, given: Sequence[Array], rest: list[Any]) -> Any:
    """Return the module of a ``.pt2`` program with one call."""
    inputs = {f"x{i}": meta("float32", x.shape) for i, x in enumerate(given)}
    args = [*map(ref, inputs), *(argument(value, "") for value in rest)]
    several = name == "ps_roi_align"
    outputs = [ref("y"), ref("unread")][: 1 + several]
    wanted = [expected for _, _, args, expected in CASES.values() if args is rest]
    shape = wanted[0](*map(burn.tensor, given)).shape if wanted else [3]
    kind = meta("int64" if name == "nms" else "float32", shape)
    node = {
        "target": f"torch.ops.torchvision.{name}.default",
        "inputs": [{"name": "", "arg": arg, "kind": 1} for arg in args],
        "outputs": outputs,
        "metadata": {},
        "name": "y",
    }
    values = {"y": kind, "unread": kind}
    return load(saved(folder, program(inputs, {}, [node], values, ["y"]), {}))


def scripted(folder: Path, name: str, given: Sequence[Array], rest: list[Any]) -> Any:
    """Return the module of a TorchScript archive with one call."""
    names = [f"x{i}" for i in range(len(given))]
    result = "y, unread, " if name == "ps_roi_align" else "y"
    call = f"ops.torchvision.{name}({', '.join([*names, *map(repr, rest)])})"
    shapes = [example("Float", *x.shape) for x in given]
    parameters = ",\n    ".join(f"{n}: Tensor" for n in names)
    script = net(f"{result} = {call}\nreturn y", *shapes, parameters=parameters)
    return load(script.saved(folder))


@pytest.mark.parametrize("build", [exported, scripted])
@pytest.mark.parametrize("case", CASES)
def test_an_operator_is_that_of_onnx(case: str, build: Any, tmp_path: Path) -> None:
    name, given, rest, expected = CASES[case]
    tensors = [burn.tensor(x) for x in given]
    actual = build(tmp_path, name, given, rest)(*tensors).numpy()
    wanted = expected(*tensors)
    wanted = wanted if isinstance(wanted, np.ndarray) else wanted.numpy()
    np.testing.assert_allclose(actual, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("build", [exported, scripted])
def test_boxes_that_overlap_a_better_one_are_left_out(
    build: Any, tmp_path: Path
) -> None:
    boxes = [[0, 0, 4, 4], [9, 9, 12, 12], [0, 1, 4, 5], [0, 0, 2, 4]]
    given = [np.array(boxes, np.float32), np.array([0.3, -1.0, 0.9, 0.2], np.float32)]
    model = build(tmp_path, "nms", given, [0.5])
    # 0 and 2 have 12 of 20 in common, 3 and 2 have 6 of 18.
    actual = model(*map(burn.tensor, given)).numpy()
    np.testing.assert_array_equal(actual, [2, 3, 1])
    assert actual.dtype == np.int64
