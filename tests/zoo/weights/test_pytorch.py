"""Third-party weights: every tensor of every file is what PyTorch reads there.

They are not in the repository: ``--zoo`` and ``--burn-fixtures`` say where they are.
"""

import hashlib
import json
import resource
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from burn_import.frontends.checkpoints.tensors import Tensor
from burn_import.pytorch import Checkpoint, read
from burn_ir import InvalidModel, ModelError, UnreadableFile, UnsupportedModel
from tests.importer.limits import check

#: How many files of each kind there have to be.
COUNTS = {"expected": 51, "refused": 41, "fixtures": 76, "fixtures refused": 19}
#: Kinds of files in the manifest that are weights, and not programs.
KINDS = ("pytorch-", "torchscript", "safetensors", "adversarial-")
#: More memory than this for one file is a file that had its way.
MOST_MEMORY = 300 * 2**10  # KiB
CALLS = "the pickle calls {}, which is refused"
LOCAL = "beside the index"
#: How files are refused: the class, and what is said.
REFUSED: dict[str, tuple[type[ModelError], str]] = {
    "pickle_builtins_eval": (UnsupportedModel, CALLS.format("builtins.eval")),
    "pickle_deep_list": (UnsupportedModel, "nested deeper than 1000"),
    "pickle_dotted_name": (UnreadableFile, "expected text in UTF-8"),
    "pickle_ext_opcode": (UnsupportedModel, "uses EXT1"),
    "pickle_getattr_chain": (UnsupportedModel, CALLS.format("builtins.getattr")),
    "pickle_importlib_import": (
        UnsupportedModel,
        CALLS.format("importlib.import_module"),
    ),
    "pickle_long4_huge": (UnsupportedModel, "an integer of 2147483647 bytes"),
    "pickle_memo_bomb": (UnsupportedModel, "more than 1000000 entries"),
    "pickle_numpy_load": (UnsupportedModel, CALLS.format("numpy.load")),
    "pickle_obj_opcode": (UnsupportedModel, "uses OBJ"),
    "pickle_posix_system": (UnsupportedModel, CALLS.format("posix.system")),
    "pickle_raw_posix_system": (UnsupportedModel, CALLS.format("posix.system")),
    "pickle_stack_underflow": (UnreadableFile, "damaged or cut off at byte 3"),
    "pickle_torch_jit_load": (UnsupportedModel, CALLS.format("torch.jit.load")),
    "pickle_torch_load": (UnsupportedModel, CALLS.format("torch.serialization.load")),
    "malicious_os_system": (UnsupportedModel, CALLS.format("posix.system")),
    "malicious_os_system_legacy": (UnsupportedModel, CALLS.format("posix.system")),
    "shard_missing": (UnreadableFile, f"'model-00001.*no such file {LOCAL}"),
    "shard_traversal": (UnreadableFile, f"{LOCAL}, got '../../../../etc/passwd'"),
    "st_deep_json": (UnreadableFile, "header is not JSON"),
    "st_duplicate_keys": (UnreadableFile, "duplicate key 'w'"),
    "st_giant_header": (UnreadableFile, "expected a file of PyTorch or safetensors"),
    "st_header_longer_than_file": (UnreadableFile, "truncated: expected a header of"),
    "st_negative_shape": (UnreadableFile, "negative dimension"),
    "st_out_of_range": (UnreadableFile, "out of range"),
    "st_overlap": (UnreadableFile, "'v' overlaps tensor 'w'"),
    "st_shape_mismatch": (UnreadableFile, r"F32 of shape \(9,\) takes 36 bytes"),
    "st_short": (UnreadableFile, "expected a file of PyTorch or safetensors"),
    "st_unknown_dtype": (UnreadableFile, "unknown dtype 'Q9'"),
    **dict.fromkeys(
        ("tar_2d_tensor", "tar_float32", "tar_float64", "tar_int64")
        + ("tar_multi_dtype", "tar_weight_bias"),
        (UnreadableFile, "got this: tar archive"),
    ),
    "tensor_big_endian": (UnreadableFile, "'archive/byteorder' twice"),
    "tensor_missing_storage": (InvalidModel, "storage '0': .* no such entry"),
    "tensor_negative_size": (InvalidModel, "sizes of 0 or more in a tensor, got -4"),
    "tensor_numel_claims_2e60": (InvalidModel, "expected 1152921504606846976 elem"),
    "tensor_offset_past_end": (InvalidModel, "reaches to element 101"),
    "tensor_size_past_storage": (InvalidModel, "reaches to element 999"),
    "tensor_storage_path_traversal": (InvalidModel, "etc/passwd': .* no such entry"),
    "zip_bomb_2gb": (UnsupportedModel, "'archive/data/0' is compressed"),
    "zip_no_data_pkl": (UnreadableFile, "an archive of one folder"),
    "zip_size_lie": (UnreadableFile, "local header disagree"),
    "broken": (UnreadableFile, "expected a file of PyTorch or safetensors"),
    "model": (UnreadableFile, r"Burn record \(.bpk\)"),
    "bad_missing_storage": (InvalidModel, "storage '0': .* no such entry"),
    "bad_truncated_storage": (InvalidModel, "256 bytes, got 100"),
    "bad_truncated_zip": (UnreadableFile, "a zip archive without end record"),
    "bad_malicious_reduce": (UnsupportedModel, CALLS.format("posix.system")),
    "bad_malicious_bare_pickle": (UnsupportedModel, CALLS.format("posix.system")),
    "bad_inst_opcode": (UnsupportedModel, "uses INST"),
    "bad_memo_bomb": (UnsupportedModel, "nested deeper than 100"),
    "bad_out_of_bounds_view": (InvalidModel, "reaches to element 25"),
    "bad_negative_size": (InvalidModel, "got -2"),
    "bad_huge_shape": (InvalidModel, "too large for memory"),
    "bad_path_traversal_key": (InvalidModel, "etc/passwd': .* no such entry"),
    "bad_st_overlap": (UnreadableFile, "'b' overlaps tensor 'a'"),
    "bad_st_oob": (UnreadableFile, "out of range"),
    "bad_st_shape_mismatch": (UnreadableFile, r"F32 of shape \(5,\) takes 20 bytes"),
    "bad_st_huge_header": (UnreadableFile, "expected a file of PyTorch"),
    "bad_st_hole": (UnreadableFile, "leaves a hole"),
}
#: Pickled modules, which the zoo would have refused: they are read, and nothing of
#: them is built. The names of their ``state_dict``.
MODULES = {
    "whole_module_sequential": ["0.weight", "0.bias", "2.weight", "2.bias"],
    "whole_module_custom_class": [
        *("mask", "enc.0.weight", "enc.0.bias", "enc.2.weight", "enc.2.bias"),
        *("enc.2.running_mean", "enc.2.running_var", "enc.2.num_batches_tracked"),
        *("head.weight", "head.bias"),
    ],
}
#: Buffers that PyTorch leaves out of a ``state_dict`` and TorchScript does not mark.
MORE = {
    "bert_tiny.torchscript": {
        "m.embeddings.position_ids",
        "m.embeddings.token_type_ids",
    }
}


@dataclass(frozen=True)
class Case:
    """One file, and what is recorded of it: the zoo's form or that of the fixtures."""

    path: Path
    expected: Path | None = None
    tensors: dict[str, Any] = field(default_factory=dict)
    scalars: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the file without its last suffix."""
        return self.path.name.split(".safetensors")[0].rsplit(".", 1)[0]


def zoo_cases(zoo: Path) -> Iterator[Case]:
    """Return the files of weights in the zoo."""
    for file in json.loads((zoo / "manifest.json").read_text("utf-8"))["files"]:
        if file["kind"].startswith(KINDS) and not file["path"].endswith((".pt2", "x")):
            expected = file.get("expected")
            yield Case(zoo / file["path"], zoo / expected if expected else None)


def fixture_cases(root: Path) -> Iterator[Case]:
    """Return the files of weights among the fixtures."""
    manifest = json.loads((root / "manifest.json").read_text("utf-8"))
    for file in [*manifest["pytorch"], *manifest["adversarial_pytorch"]]:
        path = root / (file.get("path") or file["file"])
        stem = path.name.removesuffix(".index.json").rsplit(".", 1)[0]
        kind = ".index" if path.name.endswith(".index.json") else ""
        beside = path.with_name(f"{stem}{kind}.expected.npz")
        expected = root / file["expected"] if file.get("expected") else beside
        loads = file.get("expect") == "load" or file.get("status") == "ok"
        scalars = file.get("non_tensor") or {}
        yield Case(path, expected if loads else None, file.get("tensors", {}), scalars)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Return nothing; one test for each file, or a skipped one if there is none."""
    sources = {
        "zoo_case": ("--zoo", zoo_cases),
        "fixture_case": ("--burn-fixtures", fixture_cases),
    }
    for name, (option, cases) in sources.items():
        if name not in metafunc.fixturenames:
            continue
        folder: Path = metafunc.config.getoption(option)
        if (folder / "manifest.json").is_file():
            results = list(cases(folder))
            metafunc.parametrize(
                name, results, ids=[case.path.name for case in results]
            )
        else:
            skip = pytest.mark.skip(reason=f"no files in {folder.name}/ (see {option})")
            metafunc.parametrize(name, [pytest.param(None, marks=skip)])


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder to be in, into which no attack reaches."""
    monkeypatch.chdir(tmp_path)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield tmp_path
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < MOST_MEMORY
    assert not list(tmp_path.iterdir())


def test_the_folders_are_complete(request: pytest.FixtureRequest) -> None:
    zoo: Path = request.config.getoption("--zoo")
    fixtures: Path = request.config.getoption("--burn-fixtures")
    if not all((folder / "manifest.json").is_file() for folder in (zoo, fixtures)):
        pytest.skip("no folders of files (--zoo, --burn-fixtures)")
    actual = {"expected": 0, "refused": 0, "fixtures": 0, "fixtures refused": 0}
    for case in zoo_cases(zoo):
        actual["expected"] += case.expected is not None
        actual["refused"] += case.name in REFUSED
    for case in fixture_cases(fixtures):
        actual["fixtures" if case.expected is not None else "fixtures refused"] += 1
    assert actual == COUNTS


@pytest.mark.parametrize("option", ["--zoo", "--burn-fixtures"])
def test_no_file_takes_much(option: str, request: pytest.FixtureRequest) -> None:
    folder: Path = request.config.getoption(option)
    if not (folder / "manifest.json").is_file():
        pytest.skip(f"no files in {folder.name}/ (see {option})")
    cases = zoo_cases(folder) if option == "--zoo" else fixture_cases(folder)
    print(check([case.path for case in cases]))


def test_a_file_of_the_zoo(zoo_case: Case, directory: Path) -> None:
    if zoo_case.expected is None:
        refused_or_safe(zoo_case)
        return
    recorded = json.loads(zoo_case.expected.read_text("utf-8"))
    actual = read(zoo_case.path)
    names = {tensor["name"] for tensor in recorded["tensors"]}
    assert set(actual) - MORE.get(zoo_case.name, set()) == names
    for tensor in recorded["tensors"]:
        same_as_recorded(actual, tensor)
    for scalar in recorded.get("scalars", ()):
        assert actual.scalars[".".join(map(str, scalar["path"]))] == scalar["value"]
    groups: dict[int, set[int]] = {}
    for tensor in recorded["tensors"]:
        lazy = actual[tensor["name"]]
        if isinstance(lazy, Tensor) and "storage_group" in tensor:
            block = id(lazy.storage.block)
            groups.setdefault(tensor["storage_group"], set()).add(block)
    assert all(len(blocks) == 1 for blocks in groups.values())
    assert len(set().union(*groups.values())) == len(groups)


def same_as_recorded(result: Checkpoint, tensor: dict[str, Any]) -> None:
    """Return if a tensor has the bytes, shape, dtype and strides that are recorded."""
    lazy = result[tensor["name"]]
    array = lazy.array()
    digest = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
    assert (digest, array.shape) == (tensor["sha256"], tuple(tensor["shape"]))
    if tensor.get("quantized"):
        scaling = lazy.quantization
        assert scaling is not None
        values = (scaling.scale, scaling.zero_point)
        assert values == (tensor["scale"], tensor["zero_point"])
        assert lazy.dtype.name == tensor["dtype"].removeprefix("q")
        return
    assert lazy.dtype.name == tensor["dtype"] == array.dtype.name
    if isinstance(lazy, Tensor):
        assert lazy.strides == tuple(tensor["stride"])
        assert lazy.offset == tensor.get("storage_offset", 0)


def refused_or_safe(case: Case) -> None:
    """Return if a file without recorded tensors has its answer."""
    if case.name in REFUSED:
        kind, message = REFUSED[case.name]
        with pytest.raises(kind, match=message):
            read(case.path)
        return
    actual = read(case.path)
    assert list(actual) == MODULES.get(case.name, list(actual))
    for tensor in actual.values():
        tensor.array()


def test_a_fixture(fixture_case: Case, directory: Path) -> None:
    if fixture_case.expected is None or fixture_case.path.suffix == ".tar":
        assert fixture_case.name in REFUSED
        refused_or_safe(fixture_case)
        return
    actual = read(fixture_case.path)
    with np.load(fixture_case.expected) as data:
        for name, recorded in fixture_case.tensors.items():
            array = actual[name].array()
            kind = (array.dtype.name, list(array.shape))
            assert kind == (recorded["dtype"], recorded["shape"])
            expected = np.ascontiguousarray(data[recorded["key"]])
            assert np.ascontiguousarray(array).tobytes() == expected.tobytes()
    more = set(actual) - set(fixture_case.tensors)
    assert all(name.startswith("optimizer_state_dict.") for name in more)
    for name, value in fixture_case.scalars.items():
        assert actual.scalars[name] == value
