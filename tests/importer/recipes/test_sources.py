"""Sources of recipes pass black, ruff and mypy."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import black
import numpy as np
import pytest

from burn.record import write_record
from burn_import import Hints, Options
from burn_import.pipeline import import_model, write_model
from tests.importer.recipes.onnx_net import OnnxNet
from tests.importer.recipes.test_broken import NETS
from tests.importer.recipes.vision_references import REFERENCES
from tests.modules import Array

ROOT = Path(__file__).parents[3]
LAYERS: dict[str, dict[str, tuple[int, ...]]] = {
    "mlp": {"0.weight": (6, 4), "2.weight": (3, 6)},
    "linear": {"0.weight": (6, 4), "1.weight": (3, 6)},
    "rows": {"0.weight": (4, 3, 3), "2.weight": (2, 4, 3), "4.weight": (5, 2)},
    "cnn": {"features.0.weight": (4, 3, 3, 3), "head.1.weight": (2, 16)},
    "deep": {"net.0.weight": (4, 3, 1), "net.2.weight": (4, 4, 1)},
}


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of modules."""
    folder = tmp_path_factory.mktemp("sources")
    for name, (reference, sizes) in REFERENCES.items():
        net = OnnxNet((1, 3, *sizes[0]))
        reference(net, "x")
        write(folder, name.replace(" ", "_"), net.state, Hints())
    hints = Hints(activation="relu", padding="same", pool="average")
    for name, shapes in LAYERS.items():
        state = {key: np.ones(shape, np.float32) for key, shape in shapes.items()}
        has_windows = any(len(shape) > 2 for shape in shapes.values())
        write(folder, name, state, hints if has_windows else Hints(activation="relu"))
    config = folder / "text.json"
    config.write_text('{"head_dim": 6}')
    for name, state in NETS.items():
        write(folder, name, state, Hints(config=str(config)))
    return folder


def write(folder: Path, name: str, state: dict[str, Array], hints: Hints) -> None:
    """Write the module of a state dict."""
    path = folder / "weights.safetensors"
    write_record(path, list(state.items()))
    write_model(
        import_model(path, Options(stem=name, hints=hints)), folder / f"{name}.py"
    )


@pytest.mark.thorough
def test_black_has_nothing_to_change(sources: Path) -> None:
    paths = list(sources.glob("*.py"))
    assert len(paths) == len(REFERENCES) + len(LAYERS) + len(NETS)
    for path in paths:
        text = path.read_text("ascii")
        assert black.format_str(text, mode=black.Mode(line_length=88)) == text, path


@pytest.mark.thorough
@pytest.mark.parametrize("command", [("ruff", "check", "--no-cache"), ("mypy",)])
def test_checkers_have_nothing_to_report(
    command: tuple[str, ...], sources: Path, mypy_cache: Path
) -> None:
    if importlib.util.find_spec(command[0]) is None:
        pytest.skip(f"{command[0]} is of the extra dev and not installed")
    cache = ("--strict", "--cache-dir", str(mypy_cache))
    strict = cache if command == ("mypy",) else ()
    config = ("--config", "pyproject.toml") if command[0] == "ruff" else ()
    done = subprocess.run(
        [sys.executable, "-m", *command, *config, *strict, str(sources)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
