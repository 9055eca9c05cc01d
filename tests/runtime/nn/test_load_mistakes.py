"""What is no record and no backend is refused with the class and what is accepted."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu, nn
from burn.record import RecordError
from burn.store import Store


class Net(nn.Module):
    """A layer."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(2, 2)


PATH = r"Net: expected a record \(str, Path or bytes\), got "
#: What is passed for a path, and the error.
NO_PATHS: list[tuple[Any, str]] = [
    (None, r"Net has no weights file \(Net.WEIGHTS\): pass the path of a record"),
    (3, PATH + "int"),
    ({}, PATH + "dict"),
    (Cpu(), PATH + r"Cpu\(\); pass it as backend"),
    (bytearray(9), r"Net: .* bytes of a record, got a bytearray; pass bytes\(data\)"),
    (memoryview(b""), "Net: .* bytes of a record, got a memoryview"),
]


@pytest.mark.parametrize("verify", [False, True])
@pytest.mark.parametrize(("weights", "message"), NO_PATHS)
def test_what_is_no_path_is_refused(weights: Any, message: str, verify: bool) -> None:
    with pytest.raises(TypeError, match=message):
        Net().load_weights(weights, verify=verify)
    with pytest.raises(TypeError, match=message):
        Net.load(weights, verify=verify)


@pytest.mark.parametrize("verify", [False, True])
def test_a_folder_is_refused(verify: bool, tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="expected the record of Net.* got a folder"):
        Net().load_weights(tmp_path, verify=verify)


def test_the_bytes_of_a_record_are_loaded() -> None:
    net = Net()
    data = Store().to_bytes(net, "safetensors")
    again = Net().load_weights(data)
    np.testing.assert_array_equal(again.head.weight.numpy(), net.head.weight.numpy())
    with pytest.raises(RecordError, match="bytes: truncated"):
        again.load_weights(data[:20])
    with pytest.raises(RecordError, match="bytes: nothing to verify it with"):
        again.load_weights(data, verify=True)


@pytest.mark.parametrize("backend", ["cuda", 0, Cpu])
def test_what_is_no_backend_is_refused(backend: Any, tmp_path: Path) -> None:
    net, path = Net(), tmp_path / "net.safetensors"
    net.save_weights(path)
    for call in (net.to, lambda other: net.load_weights(path, other)):
        with pytest.raises(
            TypeError, match=r"Net: expected a backend, such as burn.Cp"
        ):
            call(backend)
    assert net.to(Autodiff(Cpu())) is net


@pytest.mark.parametrize("backend", ["cuda", 0, None])
def test_tensors_refuse_what_is_no_backend(backend: Any) -> None:
    with pytest.raises(TypeError, match=r"expected a backend, such as burn.Cpu\(\)"):
        burn.tensor([1.0]).to(backend)
