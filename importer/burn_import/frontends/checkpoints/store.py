"""PyTorch files as stores, to load weights into hand-written modules."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from burn.record import Precision, RecordError
from burn.store import Content, InMemory, Store, StoredTensor
from burn_import.frontends.checkpoints.checkpoint import Checkpoint
from burn_import.frontends.checkpoints.limits import LIMITS, Limits
from burn_import.frontends.checkpoints.reader import read
from burn_import.frontends.checkpoints.tensors import Quantization, Tensor


def open_store(
    path: str | Path, top_level_key: str | None = None, *, limits: Limits = LIMITS
) -> Store:
    """Return a store of a file that :func:`burn_import.pytorch.read` reads.

    ``top_level_key`` is the dict in a checkpoint that holds the weights. Loading raises
    the errors of ``read`` and of ``Store.load``.
    """
    return Store(TorchFile(Path(path), top_level_key, limits))


@dataclass(frozen=True)
class TorchFile:
    """A read-only store of a PyTorch file."""

    path: Path
    top_level_key: str | None
    limits: Limits

    @property
    def name(self) -> str:
        return str(self.path)

    def read(self) -> Content:
        checkpoint = read(self.path, self.top_level_key, limits=self.limits)
        return Content(parts(checkpoint), checkpoint.skipped)

    def write(
        self,
        tensors: Mapping[str, StoredTensor],
        metadata: Mapping[str, str],
        precision: Precision | None,
    ) -> None:
        raise RecordError(
            f"{self.path}: files of PyTorch are read and not written; save a record, "
            "which safetensors.torch.load_file reads"
        )


def parts(checkpoint: Checkpoint) -> dict[str, StoredTensor]:
    """Return the tensors by name, memory-mapped and not read.

    A quantized tensor is its integers, with ``.scale`` and ``.zero_point`` beside it.
    """
    tensors: dict[str, StoredTensor] = {}
    for name, tensor in checkpoint.items():
        tensors[name] = tensor
        if tensor.quantization is not None:
            tensors |= _scaling(name, tensor.quantization)
    return tensors


def _scaling(name: str, scaling: Quantization) -> dict[str, StoredTensor]:
    values = {"scale": scaling.scale, "zero_point": scaling.zero_point}
    return {
        f"{name}.{part}": (
            value if isinstance(value, Tensor) else InMemory(np.array(value))
        )
        for part, value in values.items()
    }
