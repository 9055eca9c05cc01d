"""Summaries of modules, and dropout added to a model that has none."""

import copy
import pickle

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu, Tensor, nn, ops


class Block(nn.Module):
    """[N, 4] to a tensor and its first half."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = ops.relu(self.linear(x))
        return y, y[:, :2]


class Net(nn.Module):
    """Two blocks and a head tied to nothing; the list has no call."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block()])
        self.head = nn.Linear(4, 3)
        self.unused = nn.Linear(2, 2)

    def __call__(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x, _ = block(x)
        return self.head(x)


def test_summary() -> None:
    model = Net()
    model.freeze("head")
    table = nn.summary(model, burn.tensor(np.zeros((5, 4), np.float32)))
    rows = {row.path: row for row in table.rows}
    assert rows[""].outputs == ("float32[5, 3]",)
    assert rows["blocks"].outputs is None
    assert rows["blocks.0"].outputs == ("float32[5, 4]", "float32[5, 2]")
    assert rows["blocks.1.linear"].parameters == 20
    assert rows["blocks"].parameters == 40
    assert rows["unused"].outputs is None
    assert (table.parameters, table.trainable) == (61, 46)
    assert table.weight_bytes == 61 * 4
    assert table.result_bytes == (20 + 20 + 15) * 4
    text = str(table)
    assert "61 parameters, 46 trained" in text
    assert "244 bytes of weights, 220 bytes of results" in text
    assert type(model.head) is nn.Linear


def test_names_of_several_segments_are_one_level() -> None:
    class Renamed(nn.Module):
        record_names = {"encoder": "encoder.blocks", "rows": "row.row{1}"}

        def __init__(self) -> None:
            super().__init__()
            self.encoder = nn.ModuleList([Block()])
            self.rows = nn.ModuleList(nn.Linear(4, 4) for _ in range(2))

    table = nn.summary(Renamed())
    paths = ["encoder.blocks", "encoder.blocks.0", "encoder.blocks.0.linear"]
    assert [row.path for row in table.rows] == ["", *paths, "row.row1", "row.row2"]
    labels = ["(model)", "  encoder.blocks", "    0", "      linear"]
    labels += ["  row.row1", "  row.row2"]
    lines = str(table).splitlines()[1 : len(labels) + 1]
    shown = zip(labels, lines, strict=True)
    assert all(line.startswith(f"{label} ") for label, line in shown)


def test_summary_shows_what_is_trained() -> None:
    model = Net().to(Autodiff(Cpu())).freeze("blocks.0")
    table = nn.summary(model)
    trained = {row.path: row.trainable for row in table.rows}
    assert (trained[""], trained["blocks"], trained["blocks.0"]) == (41, 20, 0)
    assert "on Autodiff(Cpu()): training" in str(table)
    assert "on Cpu(): inference" in str(nn.summary(model.valid()))
    model.head = nn.Linear(4, 3)
    assert len(nn.summary(model).backends) == 2


def test_summary_without_arguments_calls_nothing() -> None:
    assert {row.outputs for row in nn.summary(Net()).rows} == {None}


def test_tied_parameters_count_once() -> None:
    model = Net()
    model.blocks[1].linear.weight = model.blocks[0].linear.weight
    table = nn.summary(model)
    rows = {row.path: row.parameters for row in table.rows}
    assert table.parameters == rows[""] == 61 - 16
    assert rows["blocks.1.linear"] == 4


class Scaled(nn.Module):
    """A layer that owns a parameter beside the layer below it."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.scale = nn.Parameter(burn.tensor(np.ones(4, np.float32)))


def test_parameters_of_modules_with_layers_below_are_counted_once() -> None:
    model = nn.ModuleList([Scaled(), Scaled()])
    model[1].scale = model[0].scale
    rows = {row.path: row.parameters for row in nn.summary(model).rows}
    assert rows == {"": 44, "0": 24, "0.linear": 20, "1": 20, "1.linear": 20}


def test_a_module_at_two_paths_counts_at_the_first() -> None:
    block = Scaled()
    table = nn.summary(nn.ModuleList([block, block]))
    rows = {row.path: row.parameters for row in table.rows}
    assert rows == {"": 24, "0": 24, "0.linear": 20, "1": 0, "1.linear": 0}
    assert table.parameters == 24


def test_dropout_is_put_back() -> None:
    model = Net()
    keys = list(model.state_dict())
    x = burn.tensor(np.random.default_rng(0).standard_normal((5, 4), np.float32))
    before = model(x).numpy()
    assert nn.dropout(model, "blocks.*", p=0.5, seed=1) is model
    assert list(model.state_dict()) == keys
    np.testing.assert_array_equal(model(x).numpy(), before)
    for same in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        same.to(Autodiff(Cpu()))
        y, half = same.blocks[0](x)
        assert (y.numpy() == 0).any()
        assert not np.array_equal(same(x).numpy(), same(x).numpy())
        np.testing.assert_array_equal(same.valid()(x).numpy(), before)
    nn.dropout(model, "blocks.*", p=0.0)
    assert type(model.blocks[0]) is Block


def test_patterns_of_dropout_select_the_outermost_modules() -> None:
    model = Net()
    nn.dropout(model, "blocks.*")
    paths = [path for path, _ in model.modules() if path.endswith("output_dropout")]
    assert paths == ["blocks.0.output_dropout", "blocks.1.output_dropout"]
    nn.dropout(model, "blocks.*", p=0.25)
    assert [path for path, _ in model.modules() if "output_dropout" in path] == paths
    nn.dropout(model, "*.linear")
    nn.dropout(model, "blocks.*", p=0)
    assert not [path for path, _ in model.modules() if "output_dropout" in path]


def test_dropout_of_one_module_leaves_those_below() -> None:
    model = Net()
    weights = {"weight": np.eye(4, dtype=np.float32), "bias": np.ones(4, np.float32)}
    for block in model.blocks:  # no ReLU is zero
        block.linear.load_state_dict(weights)
    model.to(Autodiff(Cpu()))
    nn.dropout(model, "blocks.0", p=0.5)
    assert isinstance(model.blocks[0], Block)
    assert type(model.blocks[0]) is not Block
    assert type(model.blocks[0].linear) is nn.Linear
    x = burn.tensor(np.ones((5, 4), np.float32))
    compiled = burn.compile(model)
    values = [compiled(x).numpy() for _ in range(4)]
    assert not np.array_equal(values[2], values[3])


def test_dropout_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="'heads'; there are"):
        nn.dropout(Net(), "heads", p=0.5)
    with pytest.raises(ValueError, match=r"expected p in \[0, 1\]"):
        nn.dropout(Net(), "head", p=1.5)
