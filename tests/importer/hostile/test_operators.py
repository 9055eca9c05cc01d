"""Operators on large broadcast constants take little work and memory."""

from pathlib import Path

import pytest

from tests.importer.hostile.operators import sample
from tests.importer.limits import IMPORT, check
from tests.importer.onnx_files import saved


@pytest.mark.parametrize("seed", [0])
@pytest.mark.thorough
def test_operators_on_large_constants(seed: int, tmp_path: Path) -> None:
    paths = [
        saved(tmp_path / f"{name}.onnx", proto) for name, proto in sample(60, seed)
    ]
    print(check(paths, IMPORT))


def test_the_sample_has_all_places() -> None:
    protos = [proto for _, proto in sample(60, 0)]
    inside = [node.op_type for proto in protos for node in proto.graph.node]
    assert "If" in inside and "Own" in inside and "Expand" in inside
    assert len({name.partition("_")[2] for name, _ in sample(60, 0)}) == 60
