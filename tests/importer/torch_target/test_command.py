"""``--target torch`` on the command line, in the build hook's table, in scripts."""

from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from burn.record import open_record, write_record
from burn_import import ModelGen
from burn_import.build.models import options_in
from burn_import.options import Options
from tests.cli.commands import run
from tests.importer.torch_target.models import one_node, saved, value


@pytest.fixture
def net(tmp_path: Path) -> Path:
    """A model with a convolution and a batch normalization."""
    nodes = [
        helper.make_node("Conv", ["x", "conv.weight"], ["h"], name="/conv/Conv"),
        helper.make_node(
            "BatchNormalization",
            ["h", *(f"norm.{name}" for name in ("weight", "bias", *STATISTICS))],
            ["y"],
            name="/norm/BatchNormalization",
        ),
    ]
    ones = {f"norm.{name}": np.ones(4, np.float32) for name in ("weight", "bias")}
    ones |= {f"norm.{name}": np.ones(4, np.float32) for name in STATISTICS}
    ones["conv.weight"] = np.ones((4, 3, 3, 3), np.float32)
    sides = [value("x", ["n", 3, 8, 8])], [value("y", ["n", 4, 6, 6])]
    return saved(tmp_path, nodes, *sides, ones)


STATISTICS = ("running_mean", "running_var")


def test_the_module_and_its_record_are_written(net: Path, tmp_path: Path) -> None:
    module = tmp_path / "app" / "torch_net.py"
    answer = run(net, "--target", "torch", "-o", module, "--simplify", "dead_code")
    assert answer.exit_code == 0, answer.output
    text = module.read_text("ascii")
    assert "import torch" in text or "from torch" in text
    assert "import burn" not in text and "from burn" not in text
    assert "self.norm = nn.BatchNorm2d(4)" in text
    record = open_record(module.with_suffix(".safetensors"))
    assert record["norm.num_batches_tracked"].dtype == np.int64
    assert run("check", module).exit_code == 0
    again = run(net, "--target", "torch", "-o", module, "--simplify", "dead_code")
    assert "unchanged" in again.output


def test_nothing_is_written_if_an_operation_has_no_form(tmp_path: Path) -> None:
    path = one_node(tmp_path, "TfIdfVectorizer", ["n", 3], **TFIDF)
    module = tmp_path / "torch_net.py"
    answer = run(path, "--target", "torch", "-o", module)
    assert answer.exit_code == 4
    assert "the_node" in answer.stderr and "(TfIdf)" in answer.stderr
    assert not module.exists() and not module.with_suffix(".safetensors").exists()


TFIDF = {
    "max_gram_length": 1,
    "max_skip_count": 0,
    "min_gram_length": 1,
    "mode": "TF",
    "ngram_counts": [0],
    "ngram_indexes": [0, 1],
    "pool_int64s": [1, 2],
}


def test_modules_of_pytorch_are_none_that_burn_runs(tmp_path: Path) -> None:
    path = one_node(tmp_path, "Relu", ["n", 3])
    module = tmp_path / "other.py"
    text = "class Net:\n    @classmethod\n    def load(cls): return cls()\n"
    module.write_text(text, "ascii")
    answer = run("verify", path, "--module", module)
    assert answer.exit_code == 2
    assert "expected a module of burn, got Net" in answer.stderr
    module.write_text(f"import no_such_package\n{text}", "ascii")
    answer = run("verify", path, "--module", module)
    assert answer.exit_code == 2
    assert "needs 'no_such_package', not installed" in answer.stderr


def test_weights_without_a_program_are_refused(tmp_path: Path) -> None:
    weights = tmp_path / "weights.safetensors"
    write_record(weights, [("odd.thing", np.ones(3, np.float32))], {})
    answer = run(weights, "--target", "torch", "-o", tmp_path / "net.py")
    assert answer.exit_code == 4
    assert "a model with a program for the target torch" in answer.stderr
    answer = run(weights, "--target", "torch", "-o", tmp_path / "out.safetensors")
    assert answer.exit_code == 2


def test_scripts_and_build_hooks_have_the_option(net: Path, tmp_path: Path) -> None:
    assert options_in({"target": "torch"}) == Options(target="torch")
    with pytest.raises(ValueError, match="expected one of burn, torch, got 'jax'"):
        options_in({"target": "jax"})
    options = Options(target="torch")
    ModelGen().input(net).out_dir(tmp_path).options(options).run_from_script()
    text = (tmp_path / "net.py").read_text("ascii")
    assert "from torch import" in text


def test_standalone_modules_have_one_target(net: Path, tmp_path: Path) -> None:
    module = tmp_path / "net.py"
    answer = run(net, "--target", "torch", "--standalone", "-o", module)
    assert answer.exit_code == 2, answer.output
    message = "expected the target burn of a standalone module, got 'torch'"
    assert message in answer.stderr
    assert not module.exists()
