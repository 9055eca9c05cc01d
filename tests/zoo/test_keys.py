"""Keys of imported models are PyTorch's, with PyTorch's shapes and the file's values.

The models are not in the repository: ``--zoo`` says where they are. What a file has no
key of any more, or our module in another way, is listed with the reason; a line of the
list that is not true any more is an error as well.
"""

from pathlib import Path

import numpy as np
import pytest

from burn_import.pytorch import read
from tests.written_modules import Modules
from tests.zoo.differing import DIFFERING, FOLDERS
from tests.zoo.exported_state import differences, exported_state

#: Models of which the zoo has the ``state_dict`` that was exported; the others' files
#: have no key of all that PyTorch lists, as the list of what differs says.
FITTING = ("dynamic_shapes", "gpt2_tiny", "mlp", "torch_cond")


def models(zoo: Path) -> list[Path]:
    """Return the files of the zoo that PyTorch's exporters wrote."""
    results = (path for folder in FOLDERS for path in (zoo / folder).glob("*.onnx"))
    return sorted(path for path in results if ".hand-" not in path.name)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Return nothing; one test for each file."""
    if "path" in metafunc.fixturenames:
        zoo: Path = metafunc.config.getoption("--zoo")
        skip = pytest.mark.skip(reason=f"no models in {zoo.name}/ (see --zoo)")
        none = [pytest.param(None, id="--zoo", marks=skip)]
        results = [
            pytest.param(p, id=f"{p.parent.name}/{p.stem}", marks=pytest.mark.models)
            for p in models(zoo)
        ]
        metafunc.parametrize("path", results or none)


def test_what_differs_is_in_the_zoo(request: pytest.FixtureRequest) -> None:
    actual = models(request.config.getoption("--zoo"))
    if not actual:
        pytest.skip(f"no folder of models (--zoo): {len(DIFFERING)} not checked")
    assert set(DIFFERING) <= {f"{path.parent.name}/{path.stem}" for path in actual}


@pytest.mark.sampled(6)
def test_keys_are_those_of_pytorch(path: Path, modules: Modules) -> None:
    twins = sorted(path.parent.glob(f"{path.name.split('.')[0]}.dynamo*.onnx"))
    twin = exported_state(twins[0]) if twins and ".ts-" in path.name else None
    actual = differences(modules.load(path), path, twin)
    assert actual == set(DIFFERING.get(f"{path.parent.name}/{path.stem}", {}))


@pytest.mark.parametrize("name", FITTING)
def test_a_state_dict_of_pytorch_fits(
    name: str, request: pytest.FixtureRequest, modules: Modules
) -> None:
    folder: Path = request.config.getoption("--zoo") / "pytorch"
    if not folder.is_dir():
        pytest.skip("no folder of models (--zoo)")
    weights = read(folder / f"{name}.state_dict.pt")
    state = {key: tensor.array() for key, tensor in weights.items()}
    files = sorted(folder.glob(f"{name}.*.onnx"))
    assert files
    for path in files:
        model = modules.load(path)
        before = model.state_dict()
        assert sorted(before) == sorted(state)
        for key, tensor in model.load_state_dict(state).state_dict().items():
            np.testing.assert_array_equal(tensor.numpy(), before[key].numpy())
