"""Standalone modules: what is in them, what they refuse, what is refused."""

import ast
import builtins
import dis
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from burn.record.errors import RecordError
from burn.record.safetensors import parse
from burn_import.build.models import options_in
from burn_import.codegen.gate.allowed import public
from burn_import.internal import InternalError
from burn_import.options import Options
from burn_import.output import read_header
from burn_import.pipeline import Compiled, import_model, write_model
from burn_import.standalone import standalone
from burn_import.standalone.bundle import flat_names, import_lines
from burn_import.standalone.library import External, Library
from burn_ir import UnsupportedModel
from tests.cli.commands import run
from tests.golden.test_golden import HERE as GOLDEN
from tests.importer.onnx_files import graph, model, saved, stored
from tests.layout import as_printed
from tests.standalone import LACKING, import_alone, run_alone

#: Operations that need more than NumPy.
REFUSED = {
    "decode_image": "PIL",
    "gradient": "gradients",
    "regex_full_match": "re2",
    "tokenize": "re2",
}
#: The functions of ``nn`` in generated source; others change modules or train them.
FUNCTIONS = {"buffer", "check_inputs", "parameter"}
WEIGHT = np.random.default_rng(3).normal(size=(3,)).astype(np.float32)
OPTIONS = Options(class_name="Net", stem="net", standalone=True)
SOURCE = '''"""Net: x -> y.

Made by hand.
"""

from pathlib import Path

import burn
from burn import Tensor, nn, ops


class Net(nn.Module):
    WEIGHTS = Path(__file__).with_name("net.safetensors")

    def __call__(self, x: Tensor) -> Tensor:
        {calls}
        return x
'''


def write_net(folder: Path) -> Path:
    """Write a model y = relu(x + w)."""
    nodes = [
        helper.make_node("Add", ["x", "w"], ["h"], name="add"),
        helper.make_node("Relu", ["h"], ["y"], name="act"),
    ]
    proto = model(
        graph(nodes, {"x": ["batch", 3]}, initializers=(stored("w", WEIGHT),))
    )
    return saved(folder / "model.onnx", proto)


@pytest.fixture
def net(tmp_path: Path) -> Path:
    return write_net(tmp_path)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    """The standalone module of it; the parts of the runtime are copied once."""
    return import_model(write_net(tmp_path_factory.mktemp("net")), OPTIONS)


@pytest.fixture
def module(compiled: Compiled, tmp_path: Path) -> Path:
    return write_model(compiled, tmp_path / "net.py").module


def test_the_module_works_where_there_is_numpy_alone(module: Path) -> None:
    x = np.random.default_rng(4).normal(size=(2, 3)).astype(np.float32)
    (y,) = run_alone(module, [x])
    np.testing.assert_array_equal(y, np.maximum(x + WEIGHT, 0))


def test_it_imports_nothing_that_a_browser_lacks(module: Path) -> None:
    imported = set()
    for node in ast.walk(ast.parse(module.read_text("ascii"))):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add(node.module or "")
    assert imported - {"numpy"} <= set(sys.stdlib_module_names) | {"collections.abc"}
    assert imported.isdisjoint(LACKING)


def test_the_header_says_what_it_is(module: Path) -> None:
    text = module.read_text("ascii")
    assert "A standalone module, for inference: it needs NumPy alone." in text
    assert "License: MIT OR Apache-2.0" in text
    digests = read_header(module)
    assert digests is not None and digests.body == digests.actual
    assert len(text.splitlines()) < 1100


def test_the_classes_are_those_of_an_ordinary_module(net: Path, module: Path) -> None:
    ordinary = import_model(net, replace(OPTIONS, standalone=False)).text
    classes = ordinary[ordinary.index("\nclass Net(") :]
    assert module.read_text("ascii").endswith(classes)


def test_the_same_bytes_are_written_again(net: Path, module: Path) -> None:
    before = module.read_bytes()
    written = write_model(import_model(net, OPTIONS), module)
    assert not written.changed
    assert module.read_bytes() == before


def test_the_command_line_and_tables_have_the_option(net: Path, tmp_path: Path) -> None:
    output = tmp_path / "app" / "net.py"
    assert run(net, "--standalone", "-o", output).exit_code == 0
    assert "import burn" not in output.read_text("ascii")
    assert options_in({"standalone": True}) == Options(standalone=True)
    assert Options(standalone=True).mark != Options().mark == ""


def test_the_module_can_be_verified_and_checked(net: Path, module: Path) -> None:
    result = run("verify", net, "--module", module, "--engine", "onnxruntime")
    assert result.exit_code == 0, result.output
    assert run("check", module).exit_code == 0


def test_wrong_inputs_are_refused(
    module: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = import_alone(module, monkeypatch)
    model = file.Net.load()
    x = np.zeros((2, 3))
    message = r"Net: input 'x': expected float32\[batch, 3\], got "
    with pytest.raises(file.InputError, match=message + r"the NumPy array float64"):
        model(x)
    with pytest.raises(file.InputError, match=message + r"float64\[2, 3\]$"):
        model(file.tensor(x))
    with pytest.raises(file.InputError, match=message + r"float32\[2, 4\]$"):
        model(file.tensor(np.zeros((2, 4), np.float32)))
    with pytest.raises(file.InputError, match=message + "NoneType"):
        model(None)


def test_wrong_records_are_refused(
    module: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = import_alone(module, monkeypatch)
    record = module.with_suffix(".safetensors")
    data = record.read_bytes()
    with pytest.raises(FileNotFoundError, match="no record of Net"):
        file.Net.load(tmp_path / "other.safetensors")
    with pytest.raises(TypeError, match="expected no backend"):
        file.Net.load(backend="Cuda()")
    record.write_bytes(data[:-4] + b"\0\0\0\0")
    with pytest.raises(file.RecordError, match="expected the record of SHA-256"):
        file.Net.load(verify=True)
    for damaged in (data[:-4], data[:20], b"", b"\x10" + b"\0" * 8):
        record.write_bytes(damaged)
        with pytest.raises(file.RecordError) as from_file:
            file.Net.load()
        with pytest.raises(file.RecordError) as from_bytes:
            file.Net.load(damaged)
        assert str(from_file.value).startswith(str(record))
        assert str(from_bytes.value).startswith("the bytes: ")
        with pytest.raises(RecordError) as of_the_runtime:  # in the same words
            parse(np.frombuffer(damaged, np.uint8))
        assert str(from_bytes.value) == f"the bytes: {of_the_runtime.value}"
    with pytest.raises(TypeError, match="expected a path or the bytes of a record"):
        file.Net.load(3)
    with pytest.raises(TypeError, match="Module has no weights file"):
        file.Module.load()
    with pytest.raises(file.RecordError, match="got a folder"):
        file.Net.load(tmp_path)
    with pytest.raises(file.WeightsError) as error:
        file.Net().load_state_dict({"other": WEIGHT})
    assert sorted(str(error.value).splitlines())[-1] == "unexpected other"
    with pytest.raises(RuntimeError, match="before the weights are loaded"):
        file.Net()(file.tensor(np.zeros((2, 3), np.float32)))


def test_ml_dtypes_is_needed_only_for_its_dtypes(
    net: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = replace(OPTIONS, dtype="bfloat16")
    module = write_model(import_model(net, options), tmp_path / "net.py").module
    assert "it needs NumPy and ml_dtypes alone." in module.read_text("ascii")
    import ml_dtypes

    file = import_alone(module, monkeypatch)
    x = np.array([[1, -2, 3]]).astype(ml_dtypes.bfloat16)
    y = file.Net.load()(file.tensor(x)).numpy()
    expected = np.maximum(x + WEIGHT.astype(ml_dtypes.bfloat16), x.dtype.type(0))
    np.testing.assert_array_equal(y, expected)


def test_what_needs_more_is_refused_by_name(tmp_path: Path) -> None:
    node = helper.make_node("ImageDecoder", ["x"], ["y"], pixel_format="RGB")
    x = helper.make_tensor_value_info("x", TensorProto.UINT8, ["n"])
    y = helper.make_tensor_value_info("y", TensorProto.UINT8, ["h", "w", 3])
    proto = model(helper.make_graph([node], "g", [x], [y]), opset=20)
    path = saved(tmp_path / "decoder.onnx", proto)
    result = run(path, "--standalone", "-o", tmp_path / "net.py")
    assert result.exit_code == 4
    assert "ops.decode_image: expected an operation that needs NumPy" in result.output
    assert "needs PIL" in result.output
    assert not list(tmp_path.glob("net.*"))


def called(names: list[str]) -> str:
    """Generated source with an expression for each name."""
    return SOURCE.format(calls="\n        ".join(names))


def bundled(names: list[str]) -> str:
    """A standalone module that names some operations and layers."""
    with as_printed():
        return standalone(called(names))


def globals_of(code: CodeType) -> Iterator[str]:
    """The names that functions read of their module."""
    for instruction in dis.get_instructions(code):
        if instruction.opname == "LOAD_GLOBAL":
            yield instruction.argval
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from globals_of(constant)


def test_every_operation_and_layer_is_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = public()
    names = [f"ops.{name}" for name in sorted(tables["ops"] - REFUSED.keys())]
    layers = {name for name in tables["nn"] if name[0].isupper()}
    names += [f"nn.{name}" for name in sorted(layers | FUNCTIONS)]
    names += [f"burn.{name}" for name in sorted(tables["burn"]) if "__" not in name]
    text = bundled(names)
    module = ModuleType("net")
    module.__file__ = "net.py"
    monkeypatch.setitem(sys.modules, "net", module)
    code = compile(text, "net.py", "exec")
    exec(code, module.__dict__)
    unknown = set(globals_of(code)) - vars(module).keys() - set(dir(builtins))
    assert not unknown
    for name in names:
        space, _, attribute = name.partition(".")
        assert hasattr(getattr(module, space), attribute)


@pytest.mark.parametrize("name", REFUSED)
def test_every_operation_that_is_not_is_refused(name: str) -> None:
    with pytest.raises(UnsupportedModel, match=rf"ops\.{name}: .* {REFUSED[name]}"):
        bundled([f"ops.{name}"])


def test_only_what_is_read_is_there() -> None:
    text = bundled(["ops.relu(x)"])
    names = set(re.findall(r"^(?:def|class) (\w+)", text, re.MULTILINE))
    assert {"relu", "Tensor", "tensor", "Module", "primitive"} <= names
    assert names.isdisjoint({"conv", "Linear", "Windows", "getitem", "relu_grad"})
    assert ".vjp" not in text and "composite" not in text and "namespace" not in text


def test_a_number_on_the_left_calls_the_other_comparison() -> None:
    text = bundled(["x = 0.5 < x"])
    assert "def __gt__" in text and "def __ge__" not in text


def test_what_training_and_other_devices_need_is_left_out() -> None:
    text = bundled(["nn.Dropout()", "nn.BatchNorm1d(3)", "nn.LayerNorm(3)"])
    assert "tracks_gradients" not in text and "_train" not in text
    assert "cupy" not in text and "np is np" not in text
    functions = {
        node.name: node
        for outer in ast.parse(text).body
        if isinstance(outer, ast.ClassDef) and outer.name == "Dropout"
        for node in outer.body
        if isinstance(node, ast.FunctionDef)
    }
    assert ast.unparse(functions["__call__"].body[-1]) == "return x"
    assert functions.keys() == {"__init__", "__call__"}


def test_a_name_has_one_meaning() -> None:
    product = External("from math import prod", "prod")
    assert import_lines([product, product]).splitlines()[0] == "from math import prod"
    with pytest.raises(InternalError, match="expected one meaning of prod"):
        import_lines([product, External("from numpy import prod", "prod")])


def test_names_that_mean_something_else_are_avoided() -> None:
    library = Library(ml_dtypes=False)
    definition: Any = library.meaning("burn.ops.reduction", "max")
    other: Any = library.meaning("burn.ops.shape", "split")
    names = flat_names([definition, other], ["max_"], {other: {"split", "split_"}})
    assert names == {(definition, "max"): "max__", (other, "split"): "split__"}


def test_every_golden_can_be_bundled() -> None:
    for path in sorted(GOLDEN.glob("*/model.py")):
        text = path.read_text("ascii")
        with as_printed():
            compile(standalone(text[text.index('"""') :]), str(path), "exec")
