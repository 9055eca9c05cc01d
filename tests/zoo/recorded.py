"""Files of other people with recorded inputs and outputs, as their manifests say."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from tests.modules import Array

#: What a recorded value is: an array, or (from JSON) a list or maps.
Value = Any
#: For the fixtures, whose manifest names none.
USUAL: Mapping[str, float] = {"rtol": 1e-3, "atol": 1e-4}


@dataclass(frozen=True)
class Golden:
    """One recorded call: the file, and its keys by the names of values."""

    path: Path
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]

    def read(self) -> tuple[dict[str, Value], dict[str, Value]]:
        """Return inputs and outputs by name."""
        with np.load(self.path) as data:
            inputs = {name: stored(data, key) for name, key in self.inputs.items()}
            outputs = {name: stored(data, key) for name, key in self.outputs.items()}
        return inputs, outputs


@dataclass(frozen=True)
class Case:
    """One model: where it is, what it gives, or that it has to be refused."""

    name: str
    path: Path
    tolerance: Mapping[str, float] = field(default_factory=lambda: USUAL)
    goldens: tuple[Golden, ...] = ()
    #: What the manifest expects of files that are wrong or strange, else "".
    expect: str = ""
    #: Whether the numbers are random, so that only dtypes and shapes are recorded.
    random: bool = False


def stored(data: Mapping[str, Array], key: str) -> Value:
    """Return the value at ``key``; what follows "@" says how it is stored."""
    array = data[key]
    kind = key.partition("@")[2]
    if kind == "json":
        return json.loads(str(array))
    if kind:
        return array.view(getattr(ml_dtypes, kind))
    return array.astype(object) if array.dtype.kind == "U" else array


def zoo_cases(zoo: Path) -> Iterator[Case]:
    """Return every ONNX file that the manifest of the zoo lists."""
    for file in _manifest(zoo)["files"]:
        if not file["path"].endswith(".onnx"):
            continue
        yield Case(
            file["path"].removesuffix(".onnx"),
            zoo / file["path"],
            file.get("tolerance", USUAL),
            tuple(_zoo_golden(zoo / golden) for golden in file.get("golden", ())),
            file.get("expect", ""),
        )


def _zoo_golden(path: Path) -> Golden:
    keys: dict[str, dict[str, str]] = {"in": {}, "out": {}}
    with np.load(path) as data:
        for key in data.files:
            role, _, name = key.partition(":")
            keys[role][name.partition("@")[0] if "@" in name else name] = key
    return Golden(path, keys["in"], keys["out"])


def fixture_cases(fixtures: Path) -> Iterator[Case]:
    """Return every ONNX file that the manifest of the fixtures lists."""
    manifest = _manifest(fixtures)
    for file in [*manifest["onnx"], *manifest["adversarial_onnx"]]:
        goldens = [
            Golden(
                fixtures / golden["npz"],
                {value["name"]: value["key"] for value in golden["inputs"]},
                {value["name"]: value["key"] for value in golden["outputs"]},
            )
            for golden in file["golden"]
        ]
        yield Case(
            file["path"].removesuffix(".onnx"),
            fixtures / file["path"],
            goldens=tuple(goldens),
            random=bool(file["shape_only"]),
        )


def _manifest(folder: Path) -> Any:
    return json.loads((folder / "manifest.json").read_text("utf-8"))
