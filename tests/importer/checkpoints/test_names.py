"""Names in checkpoints, pickled modules, TorchScript archives and shards."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from burn.record import write_record
from burn_import.frontends.checkpoints.limits import LIMITS
from burn_import.pytorch import Limits, read
from burn_ir import InvalidModel, UnreadableFile, UnsupportedModel
from tests.importer.checkpoints.test_files import V, W, opened, same
from tests.importer.pytorch_files import (
    ORDERED,
    Array,
    Entry,
    Name,
    New,
    PickleWriter,
    Raw,
    Reduce,
    bare_file,
    entries_of,
    legacy_file,
    script_file,
    storage,
    tensor,
    view,
    zip_file,
    zipped,
)
from tests.pace import within

SPARSE = Reduce(Name("torch._utils", "_rebuild_sparse_tensor"), (1, (2, 3)))
LINEAR = Name("torch.nn.modules.linear", "Linear")


def module(kind: Name, tensors: Any, buffers: Any = None, parts: Any = None) -> New:
    """Return a pickled module, with the fields that matter and some that do not."""
    state = {
        "training": True,
        "_parameters": tensors,
        "_buffers": buffers or {},
        "_non_persistent_buffers_set": Reduce(
            Name("__builtin__", "set"), (["cache", "other"],)
        ),
        "_forward_hooks": ORDERED,
        "_modules": parts or {},
        "activation": Name("torch.nn.functional", "gelu"),
        "elsewhere": tensor("99", V),
    }
    return New(kind, (), state)


@pytest.mark.parametrize("write", [zip_file, legacy_file, bare_file])
@pytest.mark.parametrize("protocol", [2, 4])
def test_a_pickled_module_has_the_names_of_its_state_dict(
    write: Any, protocol: int, tmp_path: Path
) -> None:
    part = module(LINEAR, {"weight": tensor("0", W), "bias": None})
    norm = module(
        Name("mine", "Norm"),
        {},
        {"mean": tensor("1", V), "cache": tensor("2", W), "none": None},
    )
    net = module(
        Name("__main__", "Net"),
        {"scale": tensor("3", W[1])},
        parts={"0": part, "norm": norm, "tied": part, "gone": None},
    )
    actual = opened(tmp_path, write(net, protocol))
    assert list(actual) == ["scale", "0.weight", "norm.mean", "tied.weight"]
    same(actual["norm.mean"].array(), V)
    if write is not bare_file:  # whose storages are written wherever they are used
        tied = actual["tied.weight"].array()
        assert np.shares_memory(actual["0.weight"].array(), tied)
    inside = opened(tmp_path, write({"epoch": 3, "model": net}, protocol))
    assert list(inside) == [f"model.{name}" for name in actual]
    assert inside.scalars == {"epoch": 3}
    assert list(opened(tmp_path, write({"model": net}, protocol), "model")) == list(
        actual
    )


def test_a_class_of_protocol_0(tmp_path: Path) -> None:
    make = Name("copy_reg", "_reconstructor")
    kind = Name("__builtin__", "object")
    state = module(LINEAR, {"weight": tensor("0", W)}).state
    net = Reduce(make, (Name("mine", "Net"), kind, None), state)
    same(opened(tmp_path, bare_file(net, 0))["weight"].array(), W)


CHECKPOINT = {
    "epoch": 7,
    "state_dict": {"net.w": tensor("0", W), "net.b": tensor("1", V[:, 0])},
    "optimizer": {
        "state": {0: {"step": 4, "avg": tensor("2", W[0])}},
        "param_groups": [{"lr": 0.5, "betas": (0.9, 0.99), "foreach": None}],
    },
    "pytorch-lightning_version": "2.4.0",
    "hyper_parameters": Reduce(Name("pathlib", "PosixPath"), ("a", "b")),
    "factory": Name("builtins", "list"),
    "rng": b"12345",
    "sparse": SPARSE,
    "loader": list(range(1001)),
    "kept": list(range(3)),
    "counts": Reduce(Name("collections", "defaultdict"), (Name("builtins", "int"),)),
    (1, 2): "odd",
}


@pytest.mark.parametrize("write", [zip_file, legacy_file, bare_file])
def test_a_checkpoint(write: Any, tmp_path: Path) -> None:
    actual = opened(tmp_path, write(CHECKPOINT, 4))
    names = ["state_dict.net.w", "state_dict.net.b", "optimizer.state.0.avg"]
    assert list(actual) == names
    same(actual["optimizer.state.0.avg"].array(), W[0])
    assert actual.producer == "pytorch-lightning 2.4.0"
    assert actual.scalars == {
        "epoch": 7,
        "optimizer.state.0.step": 4,
        **{f"kept.{n}": n for n in range(3)},
        "optimizer.param_groups.0.lr": 0.5,
        "optimizer.param_groups.0.betas.0": 0.9,
        "optimizer.param_groups.0.betas.1": 0.99,
        "optimizer.param_groups.0.foreach": None,
        "pytorch-lightning_version": "2.4.0",
    }
    assert actual.skipped == {
        "hyper_parameters": "an object of pathlib.PosixPath, which is not built",
        "factory": "the name builtins.list, which is not looked up",
        "rng": "5 bytes",
        "sparse": "a sparse tensor",
        "loader": "a list of 1001 numbers or texts",
        "": "an entry whose key is a value of type tuple",
    }


@pytest.mark.parametrize(
    ("key", "names"),
    [
        ("state_dict", ["net.w", "net.b"]),
        ("optimizer", ["state.0.avg"]),
        ("optimizer.state", ["0.avg"]),
        ("state_dict.net.w", [""]),
    ],
)
def test_a_top_level_key(key: str, names: list[str], tmp_path: Path) -> None:
    actual = opened(tmp_path, zip_file(CHECKPOINT), key)
    assert list(actual) == names
    assert actual.producer == "pytorch-lightning 2.4.0"


@pytest.mark.parametrize("key", ["model", "state_dict.w", "", "epoch.x"])
def test_keys_that_are_not_there(key: str, tmp_path: Path) -> None:
    with pytest.raises(
        InvalidModel, match="net.pt: expected a top-level key"
    ) as caught:
        opened(tmp_path, zip_file(CHECKPOINT), key)
    assert "'epoch', 'state_dict'" in str(caught.value) or "." in key


def test_names_as_odd_as_they_come(tmp_path: Path) -> None:
    names = ["", "a.b", "a/b c:d\"e'f\n", "\u043a\u043b\u044e\u0447", "class"]
    names += ["__import__('os').system('touch pwned')", "\ud800", "x" * 300]
    arrays = {name: W + n for n, name in enumerate(names)}
    root = {name: tensor(str(n), a) for n, (name, a) in enumerate(arrays.items())}
    actual = opened(tmp_path, zip_file({**root, 5: tensor("9", V)}))
    assert list(actual) == [*names, "5"]
    for name, array in arrays.items():
        same(actual[name].array(), array)


def test_two_tensors_of_one_name(tmp_path: Path) -> None:
    root = {"a.b": tensor("0", W), "a": {"b": tensor("1", V)}}
    with pytest.raises(InvalidModel, match="one tensor 'a.b', got two"):
        opened(tmp_path, zip_file(root))


def test_a_tensor_alone_and_no_tensor(tmp_path: Path) -> None:
    same(opened(tmp_path, zip_file(tensor("0", W)))[""].array(), W)
    assert opened(tmp_path, zip_file(3)).scalars == {"": 3}
    assert len(opened(tmp_path, zip_file({}))) == 0
    with pytest.raises(UnsupportedModel, match="tensors, got an object of a.B, which"):
        opened(tmp_path, zip_file(New(Name("a", "B"))))


def test_dicts_and_lists_of_classes(tmp_path: Path) -> None:
    root = New(Name("mine", "Config"), items={"w": tensor("0", W), "n": 4})
    actual = opened(tmp_path, zip_file(root))
    assert (list(actual), actual.scalars) == (["w"], {"n": 4})
    code = PickleWriter(2).code(New(Name("mine", "List"))) + b"K\5a"
    assert opened(tmp_path, zip_file([Raw(code)])).scalars == {"0.0": 5}


def script(name: str, **fields: Any) -> New:
    """Return a module of TorchScript."""
    fields = {"training": False, "_is_full_backward_hook": None, **fields}
    return New(Name(f"__torch__.{name}", "Net"), (), fields)


def test_a_torchscript_archive(tmp_path: Path) -> None:
    tag = Name("torch.jit._pickle", "restore_type_tag")
    packed = New(Name("__torch__.torch.classes.quantized", "Linear"), (), (1, 2))
    root = script(
        "mine",
        weight=tensor("0", W),
        part=script("torch.nn", bias=tensor("1", V), scale=0.5),
        tables=Reduce(tag, ([tensor("2", W[0])], "List[Tensor]")),
        packed=packed,
    )
    constants = (tensor("0", V[0]), 4, tensor("1", W[1]))
    actual = opened(tmp_path, script_file(root, constants))
    assert actual.format == "torchscript"
    assert list(actual) == ["weight", "part.bias", "tables.0"]
    same(actual["part.bias"].array(), V)
    assert list(actual.constants) == ["c0", "c2"]
    same(actual.constants["c0"].array(), V[0])
    same(actual.constants["c2"].array(), W[1])
    assert list(actual.skipped) == ["packed"]


def test_what_an_archive_says_of_itself(tmp_path: Path) -> None:
    actual = opened(tmp_path, zip_file({"w": tensor("0", W)}))
    assert actual.metadata == {"version": "3", "byteorder": "little"}
    assert actual.path == tmp_path / "net.pt"
    assert actual.constants == {} and len(actual) == 1 and "w" in actual


def sharded(folder: Path, kind: str) -> tuple[Path, dict[str, Array]]:
    """Return the index of a model in two files, and its tensors."""
    arrays = {"a.w": W, "a.b": V, "c": W[0]}
    files = {"one": ["a.w", "c"], "two": ["a.b"]}
    weight_map: dict[str, str] = {}
    for file, names in files.items():
        part = {name: arrays[name] for name in names}
        path = folder / f"{file}.{kind}"
        if kind == "safetensors":
            write_record(path, part.items())
        else:
            tensors = {n: tensor(str(k), a) for k, (n, a) in enumerate(part.items())}
            path.write_bytes(zip_file(tensors))
        weight_map |= dict.fromkeys(names, path.name)
    index = folder / f"model.{kind}.index.json"
    about = {"total_size": 9}
    index.write_text(json.dumps({"metadata": about, "weight_map": weight_map}))
    return index, arrays


@pytest.mark.parametrize("kind", ["safetensors", "bin"])
def test_shards(kind: str, tmp_path: Path) -> None:
    index, arrays = sharded(tmp_path, kind)
    actual = read(index)
    assert sorted(actual) == sorted(arrays) and actual.format == "sharded"
    for name, array in arrays.items():
        same(actual[name].array(), array)
        assert (actual[name].dtype, actual[name].shape) == (array.dtype, array.shape)
    assert actual.metadata == {"total_size": "9"}


@pytest.mark.parametrize(
    "name", ["../two.bin", "sub/two.bin", "", "..", "a\\b", "C:x", "a\0b", "gone", 3]
)
def test_files_that_are_not_beside_the_index(name: Any, tmp_path: Path) -> None:
    (tmp_path / "in" / "sub").mkdir(parents=True)
    index, _ = sharded(tmp_path / "in", "bin")
    for folder in ("in/sub", "."):
        (tmp_path / folder / "two.bin").write_bytes(zip_file({"c": tensor("0", W)}))
    index.write_text(json.dumps({"weight_map": {"c": name}}))
    message = "no such file" if name == "gone" else "the name of a file"
    with pytest.raises(UnreadableFile, match=f"{message} beside the index"):
        read(index)


def test_a_shard_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    index, _ = sharded(tmp_path / "in", "bin")
    (tmp_path / "in" / "two.bin").rename(tmp_path / "two.bin")
    (tmp_path / "in" / "two.bin").symlink_to(tmp_path / "two.bin")
    with pytest.raises(UnreadableFile, match="'two.bin': expected a file in the dir"):
        read(index)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"weight_map": {"a": "one.bin", "a": "two.bin"}}', "'a' twice"),
        ('{"weight_map": [1]}', "with a weight_map"),
        ('{"a": 1}', "with a weight_map"),
        ('{"weight_map": NaN}', "which is not JSON"),
        ('{"weight_map": ', "not JSON"),
        ('{"a": ' + "[" * 100_000, "not JSON"),
        ('{"weight_map": {"gone": "one.bin"}}', "'gone': not in 'one.bin'"),
    ],
)
def test_indexes_that_are_wrong(text: str, message: str, tmp_path: Path) -> None:
    index, _ = sharded(tmp_path, "bin")
    index.write_text(text)
    with pytest.raises((UnreadableFile, InvalidModel), match=message):
        read(index)


def test_a_tensor_that_the_index_leaves_out(tmp_path: Path) -> None:
    index, _ = sharded(tmp_path, "bin")
    index.write_text('{"weight_map": {"c": "one.bin"}}')
    actual = read(index)
    assert list(actual) == ["c"] and list(actual.skipped) == ["a.w in one.bin"]


def test_a_safetensors_file(tmp_path: Path) -> None:
    write_record(tmp_path / "r.pt", [("w", W), ("v", V)], {"format": "pt"})
    actual = read(tmp_path / "r.pt")
    assert (actual.format, actual.producer) == ("safetensors", "pt")
    same(actual["w"].array(), W)
    same(actual["v"].array(), V)
    with pytest.raises(InvalidModel, match="no top-level key"):
        read(tmp_path / "r.pt", "w")


@pytest.mark.thorough
def test_ten_thousand_tensors_are_listed_in_a_second(tmp_path: Path) -> None:
    array = np.arange(6, dtype=np.float32).reshape(1, 2, 3)
    stored = [view(storage(str(n), array + n), array.shape) for n in range(10_000)]
    path = tmp_path / "many.pt"
    root = {f"layers.{n}.weight": call for n, call in enumerate(stored)}
    path.write_bytes(zip_file(root))
    with within(1):
        results = read(path)
        listed = [(name, results[name].shape) for name in results]
    assert listed[-1] == ("layers.9999.weight", (1, 2, 3))
    same(results["layers.7123.weight"].array(), array + 7123)


def test_limits(tmp_path: Path) -> None:
    content = zip_file({"w": [[tensor("0", W)]], "text": "x" * 50, "n": [1] * 20})
    path = tmp_path / "net.pt"
    path.write_bytes(content)
    assert list(read(path, limits=LIMITS)) == ["w.0.0"]
    for limits, message in (
        (Limits(operations=40), "limit on instructions"),
        (Limits(marks=3), "deeper than 3"),
        (Limits(depth=2), "deeper than 2"),
        (Limits(entries=20), "more than 20 entries"),
        (Limits(line=8), "a line of 8 bytes"),
        (Limits(pickle=100), "expected 100 at most"),
    ):
        with pytest.raises((UnsupportedModel, UnreadableFile), match=message):
            read(path, limits=limits)


def test_entries_that_are_compressed(tmp_path: Path) -> None:
    entries = entries_of({"w": tensor("0", W)})
    described = [Entry(e.name, e.data, 8 * ("data/" not in e.name)) for e in entries]
    same(opened(tmp_path, zipped(described))["w"].array(), W)
    stored = [Entry(e.name, e.data, 8 * ("data/" in e.name)) for e in entries]
    with pytest.raises(UnsupportedModel, match="'net/data/0' is compressed.*zip -0"):
        opened(tmp_path, zipped(stored))
    with pytest.raises(UnsupportedModel, match=r"data.pkl.* expected 50 at most"):
        path = tmp_path / "net.pt"
        path.write_bytes(zipped(described))
        read(path, limits=Limits(metadata=50))
