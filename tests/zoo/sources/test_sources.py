"""Sources of well-known networks: what black, ruff and mypy say of them.

The models are not in the repository: ``--zoo FOLDER`` says where they are.
"""

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path

import black
import pytest

from burn_import.options import Options
from burn_import.pipeline import import_model, write_model
from burn_import.tracing.identifiers import identifier
from burn_import.tracing.scalar_operands import INLINE_LIMIT
from tests.written.score import REFUSED, models, source
from tests.written_modules import Modules

ROOT = Path(__file__).parent.parent.parent.parent
#: The beginnings of the names of files, by both exporters.
NETWORKS = (
    *("bert.", "convnext.", "gpt2.", "gpt2_kv.", "llama.", "llama_gqa_kv."),
    *("segformer.", "t5_decoder.", "t5_encoder.", "vit."),
    *("whisper_decoder.", "whisper_encoder."),
)
COUNT = 28
#: Of so many networks and forms a plain run checks one.
STEP = 4
#: One network in other forms: these are sources of ours, too.
FORMS = {
    "flat": Options(flat=True),
    "half": Options(dtype="float16"),
    "wide": Options(dtype="float64", flat=True),
    "plain": Options(passes=()),
    "cut": Options(outputs=("logits",), dtype="bfloat16"),
}
FORM = "gpt2.dynamo-op20.onnx"

pytestmark = pytest.mark.models


@pytest.fixture(scope="module")
def sources(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    modules: Modules,
) -> Path:
    """Return a folder of modules."""
    folder: Path = request.config.getoption("--zoo") / "arch"
    actual = [p for p in sorted(folder.glob("*.onnx")) if p.name.startswith(NETWORKS)]
    if not actual:
        pytest.skip(f"no third-party models (see --zoo): {COUNT} not checked")
    assert len(actual) == COUNT
    result = tmp_path_factory.mktemp("sources")
    step = 1 if request.config.getoption("--all-cases") else STEP
    for path in actual[::step]:
        module = path.stem.replace(".", "_").replace("-", "_")
        (result / f"{module}.py").write_text(modules.text(path), "ascii")
    for name, options in [*FORMS.items()][::step]:
        write_model(import_model(folder / FORM, options), result / f"{name}.py")
    return result


def checked(folder: Path, *command: str) -> None:
    """Return nothing if a checker has nothing to say of the folder."""
    if importlib.util.find_spec(command[0]) is None:
        pytest.skip(f"{command[0]} is of the extra dev and not installed")
    done = subprocess.run(
        [sys.executable, "-m", *command, str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_black_has_nothing_to_change(sources: Path) -> None:
    for path in sources.glob("*.py"):
        text = path.read_text("ascii")
        assert black.format_str(text, mode=black.Mode(line_length=88)) == text, path


@pytest.mark.parametrize("rules", ["E4,E7,E9,F", "N,B,I"])
def test_ruff_has_nothing_to_report(sources: Path, rules: str) -> None:
    command = ("ruff", "check", "--no-cache", "--isolated", "--target-version", "py311")
    checked(sources, *command, "--select", rules)


def test_mypy_has_nothing_to_report(sources: Path, mypy_cache: Path) -> None:
    checked(sources, "mypy", "--strict", "--cache-dir", str(mypy_cache))


@pytest.mark.thorough
def test_mypy_has_nothing_to_report_of_any_model(
    request: pytest.FixtureRequest, tmp_path: Path, mypy_cache: Path
) -> None:
    zoo: Path = request.config.getoption("--zoo")
    if not (zoo / "manifest.json").is_file():
        pytest.skip(f"no third-party models in {zoo.name}/ (see --zoo)")
    sources = tmp_path / "sources"
    for name, path in models(zoo, "*"):
        text = source(name, path, tmp_path / "score")
        if not text.startswith(REFUSED):
            sources.mkdir(exist_ok=True)
            (sources / f"{identifier(name)}.py").write_text(text, "utf-8")
    checked(sources, "mypy", "--strict", "--cache-dir", str(mypy_cache))


def test_no_long_constants_are_written_out(sources: Path) -> None:
    for path in sources.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("ascii"))):
            if isinstance(node, ast.List | ast.Tuple):
                numbers = [e for e in node.elts if isinstance(e, ast.Constant)]
                assert len(numbers) <= INLINE_LIMIT, f"{path.name}:{node.lineno}"
