"""Files that lie, attack or are damaged: one clear answer each, and nothing touched.

They are not in the repository: ``--zoo FOLDER`` says where they are.
"""

import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from burn.nn import InputError
from burn_ir import InvalidModel, ModelError, UnreadableFile, UnsupportedModel
from tests.modules import generate, import_file
from tests.written_modules import Modules
from tests.zoo.recorded import Case, zoo_cases

COUNT = 69
#: How files are refused: the class, and what is said.
REFUSED: dict[str, tuple[type[ModelError], str]] = {
    "attr_string_injection": (InvalidModel, r"'y' \(Resize, opset 17\): .*mode among"),
    "bad_dtype_code": (InvalidModel, "tensor 'w': expected a dtype .*, got number 99"),
    "claims_2e62_elements": (
        InvalidModel,
        "tensor 'w': its dims .* too large for memory",
    ),
    "conv_group_zero": (InvalidModel, r"'y' \(Conv, opset 17\): .*1 or more, got 0"),
    "conv_stride_zero_huge_pad": (InvalidModel, r"\(Conv, opset 17\): .*strides of 1"),
    "cycle": (InvalidModel, r"'a' \(Add, opset 17\): .*without cycles"),
    "dtype_mismatch_add": (InvalidModel, r"'y' \(Add, opset 17\): .*float32 and int64"),
    "duplicate_tensor_names": (InvalidModel, r"'a' \(Neg, opset 17\): .*one producer"),
    "empty_file": (UnreadableFile, r"empty_file.onnx: .*got this: empty file"),
    "empty_graph": (InvalidModel, "expected a graph with outputs, got none"),
    "ext_absolute": (UnreadableFile, "tensor 'w'.*/etc/passwd': .* relative to the"),
    "ext_huge_offset": (
        UnreadableFile,
        "tensor 'w': .*9223372036854775807 to .*16",
    ),
    "ext_length_past_end": (UnreadableFile, "tensor 'w': .*8 to 1008 of .*has 16"),
    "ext_missing_file": (UnreadableFile, "'nowhere.bin': there is no such file"),
    "ext_offset_past_end": (UnreadableFile, "tensor 'w': .*4096 to 4104 of .*has 16"),
    "ext_parent_dir": (UnreadableFile, "tensor 'w'.*in the directory of the model"),
    "ext_symlink": (UnreadableFile, "tensor 'w', external file 'link_to_passwd.bin'"),
    "ext_url": (UnreadableFile, "'http://127.0.0.1:9/w.bin': there is no such file"),
    "function_exponential": (UnsupportedModel, r"'y' \(F0\): .*at most 25992 nodes"),
    "function_self_recursive": (InvalidModel, r"\(F\): function 'F' calls itself"),
    "future_opset": (UnsupportedModel, r"expected opset \d+ or older.*got 999"),
    "git_lfs_pointer": (UnreadableFile, "Git LFS pointer.*git lfs pull"),
    "huge_length_prefix": (UnreadableFile, "claims 9223372036854775807 bytes"),
    "missing_initializer": (InvalidModel, r"'y' \(MatMul, .*'w_missing', found none"),
    "model_name_bad_utf8": (InvalidModel, "names in UTF-8"),
    "negative_dims": (InvalidModel, r"tensor 'w': .*0 or more, got \[-1, 4\]"),
    "nested_if_500": (UnreadableFile, "nested at most 32 deep, found more"),
    "node_output_twice": (
        InvalidModel,
        r"'a' \(Split, opset 18\): .*'a', found two",
    ),
    "op_type_injection": (UnsupportedModel, r"node 'y' .*system.* is not supported"),
    "random_bytes": (UnreadableFile, "damaged or cut off"),
    "raw_and_float_data": (InvalidModel, "tensor 'w': .*got float_data, raw_data"),
    "raw_data_too_long": (InvalidModel, "tensor 'w': expected 8 bytes .*, got 64"),
    "reshape_bad": (
        InvalidModel,
        r"'y' \(Reshape, .*float32\[2, 3\] .* \[4, 2\]",
    ),
    "string_matmul": (InvalidModel, r"'y' \(MatMul, opset 17\): .*float32 and string"),
    "text_not_onnx": (UnreadableFile, "got this: HTML page"),
    "truncated_half": (UnreadableFile, "damaged or cut off at byte 2"),
    "truncated_in_tensor": (UnreadableFile, "damaged or cut off at byte 2"),
    "undefined_domain": (UnsupportedModel, "'Relu' of domain 'com.example.secret'"),
    "undefined_op": (UnsupportedModel, r"\(Frobnicate, opset 17\): .*'Frobnicate' is"),
    "wrong_arity": (InvalidModel, r"'y' \(Conv, opset 17\): .*2 to 3 inputs, got 1"),
}
#: What a call with the recorded inputs says: the file declares extents that they
#: contradict. onnxruntime does not compare expressions with what it is given.
CONTRADICTED = {"names_dim_params": "axis 6 has to be a multiple of 2"}
#: More memory than this for one file is a file that had its way.
MOST_MEMORY = 300 * 2**10  # KiB


def of_zoo(zoo: Path) -> Iterator[Case]:
    """Return the cases of the folder."""
    return (case for case in zoo_cases(zoo) if case.name.startswith("adversarial/"))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Return nothing; one test for each file, or a skipped one if there is none."""
    if "case" not in metafunc.fixturenames:
        return
    zoo: Path = metafunc.config.getoption("--zoo")
    if (zoo / "manifest.json").is_file():
        results = list(of_zoo(zoo))
        metafunc.parametrize("case", results, ids=[Path(c.name).name for c in results])
    else:
        reason = f"no models in {zoo.name}/ (see --zoo): {COUNT} not checked"
        skip = pytest.mark.skip(reason=reason)
        metafunc.parametrize("case", [pytest.param(None, marks=skip)])


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder to be in and to write to, into which no attack reaches."""
    monkeypatch.chdir(tmp_path)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield tmp_path
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < MOST_MEMORY
    assert not list(tmp_path.rglob("*pwned*"))


def test_the_folder_is_complete(request: pytest.FixtureRequest) -> None:
    zoo: Path = request.config.getoption("--zoo")
    if not (zoo / "manifest.json").is_file():
        pytest.skip(f"no folder of models (--zoo): {COUNT} models not checked")
    actual = {Path(case.name).name: case for case in of_zoo(zoo)}
    assert len(actual) == COUNT
    strict = {n for n, c in actual.items() if c.expect.startswith("refuse-with")}
    kept = {n for n, c in actual.items() if c.expect.startswith("import")}
    assert strict <= set(REFUSED) <= set(actual) - kept


def test_the_answer_is_clear(case: Case, directory: Path) -> None:
    name = Path(case.name).name
    if name in REFUSED:
        kind, message = REFUSED[name]
        with pytest.raises(kind, match=message):
            generate(case.path, directory)
    elif case.goldens:
        modules = Modules(directory / "modules")
        if name in CONTRADICTED:
            with pytest.raises(InputError, match=CONTRADICTED[name]):
                case.check(modules)
        else:
            case.check(modules)
        return
    else:  # safe to import; calling it may do what the file says
        module, class_name = generate(case.path, directory)
        getattr(import_file(module), class_name).load()
        return
    assert not list(directory.iterdir())
