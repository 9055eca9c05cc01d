"""Paths and modules of the table: read from the folder of ``pyproject.toml``."""

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from onnx import helper

from burn_import.build.project import BuildFailed, import_models, project_models
from burn_import.cli.command import burn_import
from tests.importer.build.test_build_hook import build
from tests.importer.onnx_files import graph, model, saved
from tests.importer.recipes.test_recipes import bert_weights, saved as saved_weights

BERT = """\
[[tool.burn-import.models]]
input = "models/net.safetensors"
output = "src/sample/bert.py"
config = "settings/config.json"
"""
OPERATORS = """\
[[tool.burn-import.models]]
input = "models/twice.onnx"
output = "src/sample/twice.py"
operators = ["hooked_operators"]
"""
DECLARATION = """\
from burn_ir import Op, Type, Value, operator


@operator
class Twice(Op, onnx="Twice", domain="com.hooked", versions=(1,)):
    def infer(self, x: Type) -> Type:
        return x.forget()

    def lower(self, x: Value) -> Value:
        return x + x
"""
HATCH = "\n[tool.hatch.build.hooks.burn-import]\n\n"


def write_bert(root: Path, heads: int) -> None:
    """Write weights of BERT, with the configuration in another folder."""
    saved_weights(root / "models", bert_weights())
    (root / "models" / "config.json").unlink(missing_ok=True)
    (root / "settings").mkdir(exist_ok=True)
    settings = {"model_type": "bert", "num_attention_heads": heads}
    (root / "settings" / "config.json").write_text(json.dumps(settings))


def write_table(root: Path, table: str) -> None:
    """Replace the models of a hatchling project."""
    path = root / "pyproject.toml"
    head = path.read_text().partition("[[tool.hatch.build.hooks")[0]
    path.write_text(head + HATCH + table)


@pytest.fixture
def elsewhere(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project, built from another folder that has files of the same names."""
    other = project.parent / "other"
    (other / "settings").mkdir(parents=True)
    (other / "settings" / "config.json").write_text('{"model_type": "gpt2"}')
    monkeypatch.chdir(other)
    return project


def import_all(root: Path) -> None:
    """Import the models of a project by the core of all hooks."""
    assert import_models(project_models(root), root) == []


def check(root: Path) -> tuple[int, str]:
    """Return the exit code and output of ``check`` for the module of BERT."""
    module = root / "src" / "sample" / "bert.py"
    weights, config = root / "models/net.safetensors", root / "settings/config.json"
    arguments = ["check", module, "--model", weights, "--config", config]
    answer = CliRunner().invoke(burn_import, [*map(str, arguments)])
    return answer.exit_code, answer.output


def test_a_configuration_is_found_from_the_project(elsewhere: Path) -> None:
    write_table(elsewhere, BERT)
    write_bert(elsewhere, heads=3)
    import_all(elsewhere)
    module = elsewhere / "src" / "sample" / "bert.py"
    before = module.read_bytes()
    assert b"class BertLayer" in before
    assert check(elsewhere)[0] == 0
    import_all(elsewhere)
    assert module.read_bytes() == before
    write_bert(elsewhere, heads=4)
    code, output = check(elsewhere)
    assert code == 1 and "net.safetensors changed since" in output
    import_all(elsewhere)
    assert module.read_bytes() != before
    assert check(elsewhere)[0] == 0


def test_the_hook_of_hatch_finds_it_too(elsewhere: Path) -> None:
    write_table(elsewhere, BERT)
    write_bert(elsewhere, heads=3)
    build("wheel", elsewhere)
    assert check(elsewhere)[0] == 0


def test_a_missing_configuration_is_named(elsewhere: Path) -> None:
    write_table(elsewhere, BERT)
    write_bert(elsewhere, heads=3)
    (elsewhere / "settings" / "config.json").unlink()
    missing = str(elsewhere / "settings" / "config.json")
    with pytest.raises(BuildFailed) as failure:
        import_all(elsewhere)
    assert f"cannot read the configuration {missing!r}: No such file" in str(
        failure.value
    )


def test_operators_are_found_in_the_project(elsewhere: Path) -> None:
    write_table(elsewhere, OPERATORS)
    (elsewhere / "hooked_operators.py").write_text(DECLARATION)
    node = helper.make_node("Twice", ["x"], ["y"], domain="com.hooked")
    proto = model(graph([node]))
    proto.opset_import.append(helper.make_opsetid("com.hooked", 1))
    saved(elsewhere / "models" / "twice.onnx", proto)
    path = list(sys.path)
    import_all(elsewhere)
    assert "x + x" in (elsewhere / "src" / "sample" / "twice.py").read_text()
    assert sys.path == path
