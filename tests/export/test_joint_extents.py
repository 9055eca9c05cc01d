"""Named extents that only vary together, as those of concatenated inputs."""

from itertools import combinations
from pathlib import Path

import numpy as np
import onnx
import pytest

from burn import Tensor, ops, tensor
from burn_import import export_onnx
from burn_import.export.errors import ExportError
from burn_import.verification.session import run_model

NAMES = ("a", "b", "c", "d")
#: The inputs whose rows are concatenated; the others stand alone.
GROUPS = [group for count in (2, 3, 4) for group in combinations(range(4), count)]


@pytest.mark.parametrize("group", GROUPS)
def test_inputs_of_one_concatenation_have_one_extent(
    group: tuple[int, ...], tmp_path: Path
) -> None:
    def model(a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> tuple[Tensor, ...]:
        inputs = (a, b, c, d)
        joined = ops.concat([inputs[n] for n in group], axis=1)
        return joined, *(x * 2 for n, x in enumerate(inputs) if n not in group)

    path = tmp_path / "joined.onnx"
    dynamic = {name: {0: f"rows_{name}"} for name in NAMES}
    example = (np.ones((2, 3), np.float32),) * len(NAMES)
    written = export_onnx(model, example, path, dynamic=dynamic)
    extents = [
        value.type.tensor_type.shape.dim[0].dim_param
        for value in onnx.load(path).graph.input
    ]
    first = f"rows_{NAMES[group[0]]}"
    expected = [first if n in group else f"rows_{NAMES[n]}" for n in range(4)]
    assert extents == expected
    assert [note.partition(" vary")[0] for note in written.notes] == [
        ", ".join(f"rows_{NAMES[n]}" for n in group)
    ]
    arrays = {
        name: np.full((5 if n in group else n + 1, 3), n, np.float32)
        for n, name in enumerate(NAMES)
    }
    results, _ = run_model(str(path), arrays)
    for result, value in zip(
        results, model(*map(tensor, arrays.values())), strict=True
    ):
        np.testing.assert_array_equal(result, value.numpy())


def test_a_size_that_nothing_shares_is_refused(tmp_path: Path) -> None:
    def model(a: Tensor, b: Tensor) -> Tensor:
        return a.reshape(2, 3) + b.sum()

    example = (np.ones((2, 3), np.float32), np.ones((4, 3), np.float32))
    dynamic = {"a": {0: "rows"}, "b": {0: "others"}}
    with pytest.raises(ExportError, match=r"with no other size of \['rows'\]"):
        export_onnx(model, example, tmp_path / "x.onnx", dynamic=dynamic)


def test_sizes_that_the_model_refuses_are_named(tmp_path: Path) -> None:
    """Exporters fix an extent inside, and leave it free in the declared types."""

    def model(a: Tensor) -> Tensor:
        return a.reshape(7, 3)

    example, dynamic = np.ones((2, 3), np.float32), {"a": {0: "rows"}}
    with pytest.raises(ExportError, match="not run with the sizes {'rows': 2}"):
        export_onnx(model, example, tmp_path / "x.onnx", dynamic=dynamic)


def test_a_dict_for_each_of_a_named_number_of_rows_is_refused(tmp_path: Path) -> None:
    def model(x: Tensor) -> object:
        return ops.zip_map(x, [0, 1, 2])

    example = np.ones((2, 3), np.float32)
    with pytest.raises(ExportError, match="ops.zip_map returns a dict for each row"):
        export_onnx(model, example, tmp_path / "x.onnx", dynamic={"x": {0: "rows"}})
    export_onnx(model, example, tmp_path / "x.onnx")
