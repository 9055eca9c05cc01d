"""Generated modules against what a person writes for the same network.

The files beside this one are written by hand: the same layers under the same keys. They
load the weights of the generated module, which shows that they are the same network,
and their lines of code are the measure. ``python -m tests.written.test_written ZOO``
prints the table.
"""

import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest

import burn
from burn.nn import Module
from tests.modules import generate, import_file
from tests.written.measures import code_lines
from tests.zoo.recorded import Case, Golden, zoo_cases

#: The hand-written file of each model of the zoo.
WRITTEN = {
    "arch/bert.dynamo-op20": "bert",
    "arch/bert.ts-op17": "bert",
    "arch/convnext.dynamo-op20": "convnext",
    "arch/convnext.ts-op11": "convnext",
    "arch/gpt2.dynamo-op20": "gpt2",
    "arch/gpt2.ts-op17": "gpt2",
    "arch/llama.dynamo-op20": "llama",
    "arch/llama.ts-op17": "llama",
    "arch/resnet.dynamo-op20": "resnet",
    "arch/resnet.ts-op17": "resnet",
    "arch/segformer.dynamo-op20": "segformer",
    "arch/segformer.ts-op14": "segformer",
    "arch/t5_decoder.dynamo-op20": "t5_decoder",
    "arch/t5_decoder.ts-op17": "t5_decoder",
    "arch/t5_encoder.dynamo-op20": "t5_encoder",
    "arch/t5_encoder.ts-op17": "t5_encoder",
    "arch/vit.dynamo-op20": "vit",
    "arch/vit.ts-op14": "vit",
    "arch/whisper_decoder.dynamo-op20": "whisper_decoder",
    "arch/whisper_decoder.ts-op17": "whisper_decoder",
    "arch/whisper_encoder.dynamo-op20": "whisper_encoder",
    "arch/whisper_encoder.ts-op17": "whisper_encoder",
}
#: The same for files of ``../shared/repro/models``, as far as they are at hand.
REPORTED = {
    "efficientnet.ts-op11": "efficientnet",
    "levit.dynamo-op20": "levit",
    "mamba2.dynamo-op20": "mamba2",
    "slim_320": "slim_320",
    "swinv2.dynamo-op20": "swinv2",
}
#: Generated lines for one that a person writes; of these files.
MOST, MOST_REPORTED = 1.25, 1.6
ALL = {**WRITTEN, **REPORTED}
#: Keys that a file does not hold, by what the importer calls them: of two names that
#: are tied it has one, and a table that is read whole has lost its module.
LOST = {
    "arch/t5_decoder.dynamo-op20": {"m.decoder.embed_tokens": "m.shared"},
    "arch/t5_encoder.ts-op17": {"m.shared": "m.encoder.embed_tokens"},
    "arch/whisper_encoder.dynamo-op20": {"m.folded_bias": "m.embed_positions.weight"},
    "arch/whisper_encoder.ts-op17": {"m.folded_bias": "m.embed_positions.weight"},
}
#: Buffers of a generated module that the written one computes.
COMPUTED = {"arch/bert.dynamo-op20": {"m.embeddings.position_ids"}}


def compare(case: Case, folder: Path) -> tuple[int, int]:
    """Return the lines of the generated module and of the written one.

    Raises:
        AssertionError: the written one is not the same network.
    """
    path, name = generate(case.path, folder)
    generated = getattr(import_file(path), name).load()
    source = Path(__file__).with_name(f"{ALL[case.name]}.py")
    written: Any = import_module(f"tests.written.{source.stem}").Net()
    fill(written, generated, LOST.get(case.name, {}), COMPUTED.get(case.name, set()))
    for golden in case.goldens:
        inputs, expected = golden.read()
        result = written(*map(burn.tensor, inputs))
        results = result if isinstance(result, tuple) else (result,)
        for position, value in expected.items():
            actual = results[position].numpy()
            rtol, atol = case.tolerance["rtol"], case.tolerance["atol"]
            np.testing.assert_allclose(actual, value, rtol=rtol, atol=atol)
    return network_lines(path), network_lines(source)


def network_lines(path: Path) -> int:
    """Return how many lines of code describe a network.

    The check of the runtime's version is left out, which nobody writes by hand.
    """
    lines = code_lines(path.read_text("utf-8"))
    return sum(not line.startswith("burn.require_version(") for line in lines)


def fill(
    written: Module, generated: Module, lost: Mapping[str, str], computed: set[str]
) -> None:
    """Give ``written`` the weights of ``generated``: the same keys and shapes.

    Those that are ``computed`` are left out.
    """
    weights = {}
    for key, value in generated.state_dict().items():
        if key in computed:
            continue
        module, _, leaf = key.rpartition(".")
        other = lost.get(key) or f"{lost.get(module, module)}.{leaf}".lstrip(".")
        weights[other] = value
    keys = {key for key, _ in written.boxes()}
    assert set(weights) == keys, sorted(set(weights) ^ keys)
    written.load_state_dict(weights)


def cases(zoo: Path) -> list[Case]:
    """Return the models that somebody has written too."""
    return [case for case in zoo_cases(zoo) if case.name in WRITTEN]


def reported(zoo: Path) -> list[Case]:
    """Return the files beside the zoo that somebody has written too."""
    folder = zoo.parent / "repro" / "models"
    paths = [folder / f"{name}.onnx" for name in REPORTED]
    return [Case(path.stem, path, (golden(path),)) for path in paths if path.is_file()]


def golden(model: Path) -> Golden:
    """Return the recorded call of a file: ``in:`` or ``out:`` and a name are keys."""
    path = model.with_name(f"{model.stem}.golden.npz")
    with np.load(path) as arrays:
        inputs = [key for key in arrays if key.startswith("in:")]
        outputs = [key for key in arrays if key.startswith("out:")]
    return Golden(path, inputs, dict(enumerate(outputs)))


@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.sampled(3)
def test_written(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    zoo: Path = request.config.getoption("--zoo")
    if not (zoo / "manifest.json").is_file():
        pytest.skip(f"no models in {zoo.name}/ (see --zoo)")
    (case,) = (case for case in cases(zoo) if case.name == name)
    generated, written = compare(case, tmp_path)
    assert generated <= MOST * written


@pytest.mark.parametrize("name", REPORTED)
@pytest.mark.sampled(3)
def test_reported(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    zoo: Path = request.config.getoption("--zoo")
    case = next((case for case in reported(zoo) if case.name == name), None)
    if case is None:
        pytest.skip(f"no third-party models beside {zoo.name}/ (see --zoo)")
    generated, written = compare(case, tmp_path)
    assert generated <= MOST_REPORTED * written


def main(zoo: Path) -> None:
    """Print the table."""
    for case in [*cases(zoo), *reported(zoo)]:
        with TemporaryDirectory() as folder:
            try:
                generated, written = compare(case, Path(folder))
            except AssertionError as error:
                print(f"{case.name:30} {error}")
                continue
        ratio = generated / written
        print(f"{case.name:30} {generated:5} {written:5} {ratio:6.2f}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
