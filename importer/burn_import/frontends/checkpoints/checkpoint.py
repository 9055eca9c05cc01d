"""Named tensors of a file, read on demand."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from burn.dtypes import DType
from burn.record import Record, RecordError
from burn_import.frontends.checkpoints.tensor_names import Scalar
from burn_import.frontends.checkpoints.tensors import Quantization
from burn_ir import InvalidModel
from burn_ir.types import Array

#: The key of the version in a checkpoint of PyTorch Lightning.
LIGHTNING = "pytorch-lightning_version"


class LazyTensor(Protocol):
    """A tensor with known dtype and shape and memory-mapped values.

    ``array()`` is a read-only view of the file, possibly unaligned for the dtype.
    ``quantization`` has the scales of a quantized tensor's integers, else None.
    """

    @property
    def dtype(self) -> DType: ...

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def quantization(self) -> Quantization | None: ...

    def array(self) -> Array: ...


@dataclass(frozen=True, eq=False, slots=True)
class RecordTensor:
    """A tensor of a safetensors file."""

    record: Record
    name: str
    quantization: None = None

    @property
    def dtype(self) -> DType:
        return self.record.info(self.name)[0]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.record.info(self.name)[1]

    def array(self) -> Array:
        try:
            return self.record[self.name]
        except RecordError as error:
            raise InvalidModel(str(error)) from error


@dataclass(frozen=True, eq=False, repr=False)
class Checkpoint(Mapping[str, LazyTensor]):
    """An ordered mapping of names to tensors, with the file's other contents.

    ``format`` is ``zip``, ``torchscript``, ``legacy``, ``pickle``, ``safetensors``,
    ``sharded`` or ``npz``. ``metadata`` describes the container (versions, byte order),
    ``scalars`` has plain values by name (``epoch``, ``optimizer.param_groups.0.lr``),
    ``skipped`` the reasons why other entries are not read. ``constants`` are those of
    TorchScript, named as in its code (``c0``). ``notes`` explain why the tensors did
    not become a model.
    """

    path: Path
    format: str
    tensors: Mapping[str, LazyTensor]
    metadata: Mapping[str, str] = field(default_factory=dict)
    scalars: Mapping[str, Scalar] = field(default_factory=dict)
    skipped: Mapping[str, str] = field(default_factory=dict)
    constants: Mapping[str, LazyTensor] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def producer(self) -> str:
        """The program that wrote the file, with its version if recorded."""
        lightning = self.metadata.get(LIGHTNING)
        if lightning is not None:
            return f"pytorch-lightning {lightning}"
        if self.format == "npz":
            return "numpy"
        if self.format in ("safetensors", "sharded"):
            return self.metadata.get("format", "")
        return "pytorch"

    def __getitem__(self, name: str) -> LazyTensor:
        return self.tensors[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.tensors)

    def __len__(self) -> int:
        return len(self.tensors)

    def __repr__(self) -> str:
        return f"Checkpoint({str(self.path)!r}, {self.format}, {len(self)} tensors)"
