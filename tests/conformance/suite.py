"""The cases of the suite: their models, inputs and expected outputs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any
from zipfile import ZipFile

import onnx

from tests.conformance.archive import INDEX, archive, decoded


@dataclass(frozen=True)
class DataSet:
    """Arrays, lists of arrays or None, in the order of the graph."""

    inputs: Sequence[Any]
    outputs: Sequence[Any]


@dataclass(frozen=True)
class Case:
    """One case; ``inputs`` are names of the declared types, as ``float[2]``."""

    name: str
    kind: str
    operators: tuple[str, ...]
    inputs: tuple[str, ...]
    sets: int
    tolerance: tuple[float, float]

    @property
    def direct(self) -> bool:
        """Whether the case was written for the operator of its one node."""
        return self.kind == "node" and not self.is_expanded and len(self.operators) == 1

    @property
    def is_expanded(self) -> bool:
        """Whether the operator of another case is replaced by its function."""
        return "_expanded" in self.name

    def model(self) -> onnx.ModelProto:
        """A copy of the model."""
        model = onnx.ModelProto()
        model.ParseFromString(_file().read(f"{self.name}/model.onnx"))
        return model

    def data_sets(self, graph: onnx.GraphProto) -> list[DataSet]:
        """Inputs and expected outputs, of the types that ``graph`` declares."""
        results = []
        for number in range(self.sets):
            folder = f"{self.name}/test_data_set_{number}/"
            results.append(
                DataSet(
                    _values(f"{folder}input_", graph.input),
                    _values(f"{folder}output_", graph.output),
                )
            )
        return results


def _values(prefix: str, declared: Sequence[onnx.ValueInfoProto]) -> list[Any]:
    values = []
    for number, info in enumerate(declared):
        name = f"{prefix}{number}.pb"
        if name not in _names():  # a stored value
            break
        values.append(decoded(_file().read(name), info))
    return values


@cache
def _file() -> ZipFile:
    return ZipFile(archive())


@cache
def _names() -> frozenset[str]:
    return frozenset(_file().namelist())


@cache
def cases() -> Mapping[str, Case]:
    """Every case by name, in the order of the suite."""
    index = json.loads(_file().read(INDEX))
    return {
        name: Case(
            name,
            entry["kind"],
            tuple(entry["operators"]),
            tuple(entry["inputs"]),
            entry["sets"],
            tuple(entry["tolerance"]),
        )
        for name, entry in index.items()
    }
