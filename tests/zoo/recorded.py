"""Third-party files with recorded inputs and outputs, listed in manifests."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import burn
from tests.modules import Array
from tests.written_modules import Modules
from tests.zoo.known import LOWEST

#: What goes in or comes out: an array, or a list or mapping of what does.
Value = Any
#: For the fixtures, whose manifest names none.
USUAL: Mapping[str, float] = {"rtol": 1e-3, "atol": 1e-4}
#: How values are stored that are no arrays of NumPy's own dtypes.
KINDS = ("json", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int4", "uint4")


@dataclass(frozen=True)
class Golden:
    """One recorded call: keys of inputs in order, of outputs by position.

    ``kinds`` says of a key how its value is stored.
    """

    path: Path
    inputs: Sequence[str]
    outputs: Mapping[int, str]
    kinds: Mapping[str, str] = field(default_factory=dict)

    def read(self) -> tuple[list[Value], dict[int, Value]]:
        """Return the inputs, and the outputs by position."""
        with np.load(self.path) as data:
            return (
                [self.value(data, key) for key in self.inputs],
                {at: self.value(data, key) for at, key in self.outputs.items()},
            )

    def value(self, data: Mapping[str, Array], key: str) -> Value:
        """Return the value at ``key``."""
        array, kind = data[key], self.kinds.get(key, "")
        if kind == "json":
            return json.loads(str(array))
        if kind:
            return array.view(getattr(ml_dtypes, kind))
        return array.astype(object) if array.dtype.kind == "U" else array


@dataclass(frozen=True)
class Case:
    """One model: where it is, what it gives, or that it has to be refused."""

    name: str
    path: Path
    goldens: tuple[Golden, ...]
    tolerance: Mapping[str, float] = field(default_factory=lambda: USUAL)
    #: What the manifest expects of files that are wrong or strange, else "".
    expect: str = ""
    #: Whether the numbers are random, so that only dtypes and shapes are recorded.
    random: bool = False
    nodes: int = 0

    @property
    def architecture(self) -> str:
        """The name without the exporter: ``arch/bert`` of ``arch/bert.ts-op14``."""
        return self.name.partition(".")[0]

    def check(self, modules: Modules) -> None:
        """Return if the module that is written gives what is recorded."""
        model = modules.load(self.path)
        for golden in self.goldens:
            inputs, expected = golden.read()
            result = model(*map(given, inputs))
            results = result if isinstance(result, tuple) else (result,)
            for position, value in expected.items():
                where = f"{golden.path.name}, output {position}"
                self.compare(results[position], value, where)

    def compare(self, actual: Value, expected: Value, where: str) -> None:
        """Return if a result is what is recorded."""
        if isinstance(expected, Mapping):
            named = {str(key): value for key, value in actual.items()}
            assert list(named) == list(expected), where
            actual, expected = list(named.values()), list(expected.values())
        if isinstance(expected, list):
            assert len(actual) == len(expected), where
            for a, b in zip(actual, expected, strict=True):
                self.compare(a, b, where)
            return
        a = np.asarray(actual.numpy() if isinstance(actual, burn.Tensor) else actual)
        b = np.asarray(expected)
        if isinstance(expected, np.ndarray):
            assert (a.dtype, a.shape) == (b.dtype, b.shape), where
        if self.random:
            return
        if b.dtype.kind in "fc" or not b.dtype.isbuiltin:
            a, b = (x.astype(complex if x.dtype.kind == "c" else float) for x in (a, b))
            if self.name in LOWEST:
                b = np.where(b == np.finfo(np.float32).min, -np.inf, b)
            rtol, atol = self.tolerance["rtol"], self.tolerance["atol"]
            np.testing.assert_allclose(a, b, rtol=rtol, atol=atol, err_msg=where)
        else:
            np.testing.assert_array_equal(a, b, err_msg=where)


def with_marks(
    cases: Iterable[Case],
) -> Iterator[tuple[Case, list[pytest.MarkDecorator]]]:
    """Return cases with the marks of a test that needs one export of an architecture.

    The other exports are marked ``nightly``.
    """
    for _, exports in groupby(cases, attrgetter("architecture")):
        for number, case in enumerate(exports):
            yield case, [pytest.mark.nightly] * (number > 0)


def given(value: Value) -> Value:
    """Return what a generated model is called with for a recorded input."""
    if isinstance(value, list):
        return [given(item) for item in value]
    return burn.tensor(value)


def zoo_cases(zoo: Path) -> Iterator[Case]:
    """Return every ONNX file that the manifest of the zoo lists."""
    for file in _manifest(zoo)["files"]:
        if file["path"].endswith(".onnx"):
            goldens = (_zoo_golden(zoo / name, file) for name in file.get("golden", ()))
            yield Case(
                file["path"].removesuffix(".onnx"),
                zoo / file["path"],
                tuple(goldens),
                file.get("tolerance", USUAL),
                file.get("expect", ""),
                nodes=file.get("node_count_with_subgraphs_and_functions", 0),
            )


def _zoo_golden(path: Path, file: Any) -> Golden:
    """A recorded call whose keys are ``in:NAME`` and ``out:NAME``, ``@KIND`` behind."""
    keys: dict[str, str] = {}
    kinds = {}
    with np.load(path) as data:
        for key in data.files:
            name, _, kind = key.rpartition("@")
            if kind in KINDS:
                kinds[key] = kind
            keys[name if kind in KINDS else key] = key
    names = enumerate(value["name"] for value in file["outputs"])
    outputs = {at: keys.get(f"out:{name}", f"out:#{at}") for at, name in names}
    inputs = [keys.get(f"in:{value['name']}") for value in file["inputs"]]
    recorded = [key for key in inputs if key is not None]
    return Golden(path, recorded, outputs, kinds)


def fixture_cases(fixtures: Path) -> Iterator[Case]:
    """Return every ONNX file that the manifest of the fixtures lists."""
    manifest = _manifest(fixtures)
    for file in [*manifest["onnx"], *manifest["adversarial_onnx"]]:
        names = [value["name"] for value in file["outputs"]]
        yield Case(
            file["path"].removesuffix(".onnx"),
            fixtures / file["path"],
            tuple(_fixture_golden(fixtures, g, names) for g in file["golden"]),
            random=bool(file["shape_only"]),
        )


def _fixture_golden(fixtures: Path, golden: Any, names: list[str]) -> Golden:
    values = [*golden["inputs"], *golden["outputs"]]
    return Golden(
        fixtures / golden["npz"],
        [value["key"] for value in golden["inputs"]],
        {names.index(value["name"]): value["key"] for value in golden["outputs"]},
        {v["key"]: v["dtype"].split()[0] for v in values if "raw bits" in v["dtype"]},
    )


def _manifest(folder: Path) -> Any:
    return json.loads((folder / "manifest.json").read_text("utf-8"))
