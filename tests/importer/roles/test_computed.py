"""Arrays that the importer computes from others are no parameters by their names."""

from pathlib import Path

import numpy as np
import pytest

from tests.importer.roles.test_files import X, holds, imported
from tests.importer.torch_files import drawn, exported, node

HEAD = {"head.weight": drawn(6, 6), "head.bias": drawn(6)}


@pytest.mark.parametrize("name", ["hidden_state", "encoder.state"])
@pytest.mark.parametrize("producer", ["pytorch", "tf2onnx", ""])
def test_filled_arrays_are_computed(tmp_path: Path, producer: str, name: str) -> None:
    nodes = [
        node("ConstantOfShape", "shape", name, ""),
        node("Exp", "x", "e", ""),
        node("Add", f"e {name}", "a", ""),
        node("Gemm", "a head.weight head.bias", "y", "head", transB=1),
    ]
    proto = exported(nodes, {**HEAD, "shape": np.array([2, 6])}, [2, 6])
    proto.producer_name = producer
    state = imported(tmp_path, proto, X)
    assert state.parameters == set(HEAD)


@pytest.mark.parametrize("name", ["add.joined", "encoder.position_bias"])
def test_sums_of_computed_arrays_are_computed(tmp_path: Path, name: str) -> None:
    nodes = [
        node("Add", "val_1 val_2", name, ""),
        node("Exp", "x", "e", ""),
        node("Add", f"e {name}", "a", ""),
        node("Gemm", "a head.weight head.bias", "y", "head", transB=1),
    ]
    folded = {"val_1": drawn(2, 6, seed=3), "val_2": drawn(2, 6, seed=4)}
    state = imported(tmp_path, exported(nodes, {**HEAD, **folded}, [2, 6]), X)
    holds(state, HEAD)
    assert state.parameters == set(HEAD)
    assert not [key for key in state.arrays if key.endswith(name.split(".")[-1])]
