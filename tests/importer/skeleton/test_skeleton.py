"""Skeletons for weights of unknown architectures."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import burn
from burn import nn
from burn.record import write_record
from burn_import import load
from burn_import.codegen.gate.gate import check_body
from burn_import.codegen.module.module import Source
from burn_import.options import Options
from burn_import.pipeline import import_model, write_model
from burn_import.skeleton import skeleton
from burn_import.skeleton.source import MOST_MEMBERS
from burn_ir import UnsupportedModel
from tests.cli.commands import run
from tests.importer.pytorch_files import tensor, zip_file
from tests.modules import Array
from tests.sampling import emission_count, example_count

ROOT = Path(__file__).parents[3]


def saved(folder: Path, state: dict[str, Array]) -> Path:
    """Return the record of a state dict."""
    path = folder / "net.safetensors"
    write_record(path, list(state.items()))
    return path


def source(path: Path) -> str:
    """Return the source for a file of weights."""
    return import_model(path, Options(class_name="Net", stem="net")).text


def check_weights(path: Path, state: dict[str, Array]) -> Any:
    """Return the module of a file, after a bitwise check of each tensor by key."""
    model = load(path)
    actual = model.state_dict()
    assert set(actual) == set(state)
    for key, value in state.items():
        assert actual[key].numpy().dtype == value.dtype
        assert actual[key].numpy().tobytes() == value.tobytes()
    return model


#: Layers, and constructors for their reconstruction from weights alone.
LAYERS: dict[str, tuple[Callable[[], nn.Module], str]] = {
    "proj": (lambda: nn.Linear(6, 4), "nn.Linear(6, 4)"),
    "plain": (lambda: nn.Linear(6, 4, bias=False), "nn.Linear(6, 4, bias=False)"),
    "c_fc": (lambda: nn.Conv1D(8, 6), "nn.Conv1D(8, 6)"),
    "tok_emb": (lambda: nn.Embedding(9, 4), "nn.Embedding(9, 4)"),
    "conv1": (lambda: nn.Conv1d(3, 5, 2), "nn.Conv1d(3, 5, kernel_size=2)"),
    "conv2": (
        lambda: nn.Conv2d(3, 5, (2, 3), bias=False),
        "nn.Conv2d(3, 5, kernel_size=(2, 3), bias=False)",
    ),
    "conv3": (lambda: nn.Conv3d(3, 5, 2), "nn.Conv3d(3, 5, kernel_size=2)"),
    "head": (
        lambda: nn.ConvTranspose2d(6, 4, 2),
        "nn.ConvTranspose2d(6, 4, kernel_size=2)",
    ),
    "up": (
        lambda: nn.ConvTranspose1d(4, 4, 2),
        "nn.ConvTranspose1d(4, 4, kernel_size=2)",
    ),
    "norm": (lambda: nn.LayerNorm(6), "nn.LayerNorm(6)"),
    "norms": (lambda: nn.LayerNorm((2, 3)), "nn.LayerNorm((2, 3))"),
    "rms_norm": (lambda: nn.RMSNorm(6), "nn.RMSNorm(6)"),
    "group_norm": (lambda: nn.GroupNorm(4, 8), "nn.GroupNorm(4, 8)"),
    "bn": (lambda: nn.BatchNorm1d(5), "nn.BatchNorm1d(5)"),
    "bare_bn": (
        lambda: nn.BatchNorm1d(5, affine=False),
        "nn.BatchNorm1d(5, affine=False)",
    ),
    "prelu": (lambda: nn.PReLU(3), "nn.PReLU(3)"),
    "lstm": (
        lambda: nn.LSTM(3, 4, num_layers=2, bidirectional=True),
        "nn.LSTM(3, 4, num_layers=2, bidirectional=True)",
    ),
    "gru": (lambda: nn.GRU(3, 4, bias=False), "nn.GRU(3, 4, bias=False)"),
    "rnn": (lambda: nn.RNN(3, 4), "nn.RNN(3, 4)"),
    "cell": (lambda: nn.LSTMCell(3, 4), "nn.LSTMCell(3, 4)"),
}


def state_of(**modules: nn.Module) -> dict[str, Array]:
    """Return random weights of modules by their keys."""
    rng = np.random.default_rng(2)
    return {
        f"{name}.{key}": rng.normal(size=box.shape).astype(np.float32)
        for name, module in modules.items()
        for key, box in module.boxes()
    }


@pytest.mark.parametrize("name", LAYERS)
def test_layers_are_told_by_names_and_shapes(name: str, tmp_path: Path) -> None:
    make, text = LAYERS[name]
    state = state_of(**{name: make()})
    path = saved(tmp_path, state)
    assert f"self.{name} = {text}" in " ".join(source(path).split())
    check_weights(path, state)


def test_channels_tell_groups_and_a_norm_its_rank(tmp_path: Path) -> None:
    stem, deep = nn.Conv2d(1, 8, 3), nn.Conv2d(8, 8, 3, groups=8)
    state = state_of(a=stem, b=deep, c=nn.Conv2d(8, 4, 1, groups=2))
    state |= state_of(d=nn.BatchNorm2d(4))
    text = source(saved(tmp_path, state))
    assert "self.a = nn.Conv2d(1, 8, kernel_size=3)" in text
    assert "self.b = nn.Conv2d(8, 8, kernel_size=3, groups=8)" in text
    assert "self.c = nn.Conv2d(8, 4, kernel_size=1, groups=2)" in text
    assert "self.d = nn.BatchNorm2d(4)" in text
    assert "strides, paddings and dilations of convolutions" in " ".join(text.split())


def test_equal_siblings_share_a_class(tmp_path: Path) -> None:
    state: dict[str, Array] = {}
    for number in range(3):
        own = {"norm": nn.LayerNorm(4), "fc": nn.Linear(4, 8 + number)}
        state |= {f"layers.{number}.{k}": v for k, v in state_of(**own).items()}
    path = saved(tmp_path, state)
    text = source(path)
    assert "nn.ModuleList([Layer(8), Layer(9), Layer(10)])" in text
    assert "def __init__(self, out_features: int) -> None:" in text
    assert "``layers.0`` and 2 more." in text
    model = check_weights(path, state)
    with pytest.raises(NotImplementedError, match="write what this does with layers"):
        model(burn.tensor([1.0]))
    with pytest.raises(NotImplementedError, match="this does with norm and fc"):
        model.layers[0](burn.tensor([1.0]))


def test_numbered_siblings_of_other_widths_share_a_class(tmp_path: Path) -> None:
    """As in YuNet, whose ``model1`` and ``model2`` differ in channels."""
    state: dict[str, Array] = {
        f"model0.bn.{name}": np.ones(4, np.float32) for name in ("weight", "bias")
    }
    for number, width in ((0, 4), (1, 4), (2, 8)):
        for conv in ("conv1", "conv2"):
            weight = np.ones((8, width, 1, 1), np.float32)
            state[f"model{number}.{conv}.inner.weight"] = weight
    path = saved(tmp_path, state)
    text = source(path)
    assert "self.model0 = BnModel()" in text
    assert "self.model1 = Model1(" in text and "self.model2 = Model1(" in text
    check_weights(path, state)


def test_numbers_at_the_root_stay_keys(tmp_path: Path) -> None:
    state = {f"{n}.weight": np.ones((2, 2), np.float32) for n in (0, 2, 5)}
    path = saved(tmp_path, state)
    assert "class Net(nn.Sequential):" in source(path)
    model = check_weights(path, state)
    with pytest.raises(NotImplementedError, match="0, 2 and 5"):
        model(burn.tensor([1.0]))


def test_attention_is_a_module_with_its_joined_weight(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    shapes = {"in_proj_weight": (12, 4), "in_proj_bias": (12,)}
    shapes |= {"out_proj.weight": (4, 4), "out_proj.bias": (4,)}
    state = {
        f"attn.{k}": rng.normal(size=s).astype(np.float32) for k, s in shapes.items()
    }
    path = saved(tmp_path, state)
    text = source(path)
    assert "self.attn = MultiheadAttention()" in text
    assert "self.in_proj_weight = nn.parameter(12, 4)" in text
    check_weights(path, state)


def test_what_no_layer_holds_is_a_parameter_or_a_buffer(tmp_path: Path) -> None:
    state: dict[str, Array] = {
        "scale": np.ones((), np.float32),
        "position_ids": np.arange(3),
        "mask": np.array([True, False]),
        "causal_mask": np.zeros((2, 2), np.float32),
        "half.weight": np.ones((3, 2), np.float16),
        "half.bias": np.ones(3, np.float16),
        "lora.weight_A": np.ones((2, 3), np.float32),
    }
    path = saved(tmp_path, state)
    text = source(path)
    for line in (
        "self.scale = nn.parameter()",
        "self.position_ids = nn.buffer(3, dtype=burn.int64)",
        "self.mask = nn.buffer(2, dtype=burn.bool_)",
        "self.causal_mask = nn.buffer(2, 2)",
        "self.weight = nn.parameter(3, 2, dtype=burn.float16)",
        "self.weight_A = nn.parameter(2, 3)",
    ):
        assert line in text
    check_weights(path, state)


def test_counts_of_batches_are_left_out(tmp_path: Path) -> None:
    state = state_of(bn=nn.BatchNorm1d(3))
    whole = {**state, "bn.num_batches_tracked": np.asarray(7, np.int64)}
    check_weights(saved(tmp_path, whole), state)
    alone = {"x.num_batches_tracked": np.asarray(7, np.int64)}
    check_weights(saved(tmp_path, alone), alone)


def test_keys_that_python_does_not_allow_are_told(tmp_path: Path) -> None:
    keys = ["class.weight", "to.x", "5", "a-b", "nn", "x.0.y", "x.1"]
    state = {key: np.full(2, n, np.float32) for n, key in enumerate(keys)}
    model = load(saved(tmp_path, state))
    assert list(model.state_dict()) == [
        *("class_.weight", "to_.x", "x.part_0.y", "x.tensor_1"),
        *("tensor_5", "a_b", "nn"),
    ]
    values = [v.numpy()[0] for v in model.state_dict().values()]
    assert values == [0, 1, 5, 6, 2, 3, 4]
    text = " ".join(source(tmp_path / "net.safetensors").split())
    assert "'class.weight' is class_.weight" in text


NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


@settings(max_examples=emission_count())
@given(st.lists(NAMES, min_size=1, max_size=6, unique=True))
def test_hostile_names_become_safe_source(names: list[str]) -> None:
    arrays = [(name, np.full(2, n, np.float32)) for n, name in enumerate(names)]
    result = skeleton(arrays, "Net", "net.safetensors")
    check_body(result.text.encode("ascii"))
    space: dict[str, Any] = {"__file__": "net.py"}
    exec(compile(result.text, "net.py", "exec"), space)
    model = space["Net"]().load_state_dict(dict(result.weights))
    kept = sorted(v.numpy()[0] for v in model.state_dict().values())
    assert kept == list(range(len(names)))
    assert skeleton(arrays, "Net", "net.safetensors") == result


PIECES = st.sampled_from(
    ["0", "1", "a", "self", "in_proj_weight", "norm", "conv", "up", "emb", "layers"]
)
LEAVES = st.sampled_from(
    ["weight", "bias", "running_mean", "running_var", "num_batches_tracked", "0"]
    + ["weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0", "weight_hh"]
)
KEYS = st.builds(
    lambda pieces, leaf: ".".join([*pieces, leaf]), st.lists(PIECES, max_size=3), LEAVES
)
SHAPES = st.lists(st.integers(0, 4), max_size=4).map(tuple)
DTYPES = st.sampled_from(["float32", "float32", "float16", "int64", "bool"])


@settings(max_examples=example_count(40))
@given(st.dictionaries(KEYS, st.tuples(SHAPES, DTYPES), min_size=1, max_size=8))
def test_any_shapes_are_held(tensors: dict[str, tuple[tuple[int, ...], str]]) -> None:
    arrays = [(key, np.ones(shape, dtype)) for key, (shape, dtype) in tensors.items()]
    result = skeleton(arrays, "Net", "net.safetensors")
    check_body(result.text.encode("ascii"))
    space: dict[str, Any] = {"__file__": "net.py"}
    exec(compile(result.text, "net.py", "exec"), space)
    model = space["Net"]().load_state_dict(dict(result.weights))
    state = model.state_dict()
    assert set(state) == {key for key, _ in result.weights}
    left = [key for key in tensors if not key.endswith("num_batches_tracked")]
    assert len(state) >= len(left)


def test_lists_at_the_root_and_in_lists() -> None:
    def made_of(*keys: str) -> Source:
        arrays = [(key, np.ones((2, 2), np.float32)) for key in keys]
        return skeleton(arrays, "Net", "n.safetensors")

    result = made_of("0.attn.w", "1.attn.w")
    assert [key for key, _ in result.weights] == ["0.attn.w", "1.attn.w"]
    assert "super().__init__(Block(), Block())" in result.text
    result = made_of("0.1.w", "2.w")
    assert [key for key, _ in result.weights] == ["part_0.1.w", "part_2.w"]
    result = made_of("a.0.1.w", "a.1.0.w")
    assert [key for key, _ in result.weights] == ["a.0.1.w", "a.1.0.w"]


def test_more_members_than_a_source_can_list_are_refused() -> None:
    flat = [(f"t{n}", np.ones(2, np.float32)) for n in range(MOST_MEMBERS + 1)]
    with pytest.raises(UnsupportedModel, match="^the top module: .* 3000 ten"):
        skeleton(flat, "Net", "net.safetensors")
    inner = [(f"a.b{n}.weight", array) for n, (_, array) in enumerate(flat)]
    with pytest.raises(UnsupportedModel, match="^'a': .*got 3001; `-o weights.safe"):
        skeleton(inner, "Net", "net.safetensors")
    listed = [(f"a.{n}.w", array) for n, (_, array) in enumerate(flat)]
    assert len(skeleton(listed, "Net", "net.safetensors").weights) == 3001


def test_names_that_nest_without_end_are_joined() -> None:
    arrays = [(".".join("a" * 5000), np.ones(2, np.float32))]
    result = skeleton(arrays, "Net", "net.safetensors")
    assert len(result.weights[0][0].split(".")) < 40


def test_the_command_says_what_is_missing(tmp_path: Path) -> None:
    path = saved(tmp_path, state_of(a=nn.Linear(2, 3)))
    output = tmp_path / "model.py"
    answer = run(path, "-o", output)
    assert answer.exit_code == 0, answer.output
    assert "note: The weights come without the program" in answer.output
    first = output.read_bytes()
    assert run(path, "-o", output).output.startswith("unchanged")
    assert output.read_bytes() == first
    answer = run(path, "-o", output, "--flat", "--shape", "x=1")
    assert answer.exit_code == 2
    assert "--flat: expected a model with a program" in answer.output
    assert "--shape: expected a model with a program" in answer.output


def test_weights_of_one_storage_are_tied(tmp_path: Path) -> None:
    array = np.arange(6, dtype=np.float32).reshape(3, 2)
    other = tensor("1", array)
    state = {"emb.weight": tensor("0", array), "layers.0.w": other, "layers.1.w": other}
    state["head.weight"] = tensor("0", array)
    path = tmp_path / "net.pt"
    path.write_bytes(zip_file(state))
    compiled = import_model(path, Options(class_name="Net", stem="net"))
    assert "self.head.weight = self.emb.weight" in compiled.text
    assert "self.layers[1].w = self.layers[0].w" in compiled.text
    assert [key for key, _ in compiled.weights] == ["emb.weight", "layers.0.w"]
    model: Any = check_weights(path, dict.fromkeys(state, array))
    assert model.head.weight is model.emb.weight


def test_an_unknown_architecture_is_named(tmp_path: Path) -> None:
    path = saved(tmp_path, state_of(a=nn.Linear(2, 3)))
    (tmp_path / "config.json").write_text('{"model_type": "odd"}')
    text = " ".join(source(path).split())
    assert "no known architecture called odd fits them." in text


def test_the_dict_of_the_weights_is_found_or_asked_for(tmp_path: Path) -> None:
    path, output = tmp_path / "net.pt", tmp_path / "model.py"
    array = np.ones((2, 3), np.float32)
    weight, state = {"fc.weight": tensor("0", array)}, {"m": tensor("1", array)}
    for name, code in (("state_dict", 0), ("model_state_dict", 0), ("net", 4)):
        path.write_bytes(zip_file({name: weight, "optimizer": state}))
        answer = run(path, "-o", output, "--force")
        assert answer.exit_code == code, answer.output
    assert "--top-level-key net takes the weights" in answer.output
    answer = run(path, "-o", output, "--force", "--top-level-key", "net")
    assert answer.exit_code == 0, answer.output
    assert "self.fc = nn.Linear(3, 2, bias=False)" in output.read_text()


def test_dtype_is_that_of_all_floats(tmp_path: Path) -> None:
    state: dict[str, Array] = {"a.weight": np.ones((3, 2), np.float16)}
    state["n"] = np.arange(3)
    path = saved(tmp_path, state)
    compiled = import_model(path, Options(dtype="float32", stem="net"))
    assert "nn.Linear(2, 3, bias=False)" in compiled.text
    assert {a.dtype.name for _, a in compiled.weights} == {"float32", "int64"}


@pytest.mark.parametrize("command", [("ruff", "check", "--no-cache"), ("mypy",)])
def test_linters_have_nothing_to_report(
    command: tuple[str, ...], tmp_path: Path, mypy_cache: Path
) -> None:
    modules = {name: make() for name, (make, _) in LAYERS.items()}
    state = state_of(**modules) | {
        f"blocks.{n}.{k}": v for n in (0, 1, 4) for k, v in state_of(**modules).items()
    }
    compiled = import_model(saved(tmp_path, state), Options(stem="skeleton"))
    module = write_model(compiled, tmp_path / "skeleton.py").module
    cache = ("--strict", "--cache-dir", str(mypy_cache))
    strict = cache if command == ("mypy",) else ()
    config = ("--config", "pyproject.toml") if command[0] == "ruff" else ()
    pytest.importorskip(command[0])
    done = subprocess.run(
        [sys.executable, "-m", *command, *config, *strict, str(module)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
