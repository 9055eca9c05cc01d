"""Configurations: files, defaults, copies and errors that name the field."""

import enum
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest

from burn.config import Config, ConfigError


class Kind(enum.Enum):
    """An enum whose values are not its names."""

    SMALL = 1
    LARGE = 2


@dataclass(frozen=True)
class Layer(Config):
    """A nested configuration."""

    size: int
    dropout: float = 0.5
    activation: Literal["relu", "gelu"] = "relu"


@dataclass(frozen=True)
class Training(Config):
    """Fields of every type."""

    layer: Layer
    layers: list[Layer] = field(default_factory=list)
    kind: Kind = Kind.SMALL
    folder: Path = Path("runs")
    name: str = 'é "quoted"\n'
    epochs: int | None = None
    rate: int | float = 1
    betas: tuple[float, float] = (0.9, 0.999)
    sizes: tuple[int, ...] = ()
    groups: dict[str, dict[str, float]] = field(default_factory=dict)
    flag: bool = False
    extra: Any = None

    def __post_init__(self) -> None:
        if self.epochs is not None and self.epochs < 1:
            raise ConfigError(f"epochs: expected at least 1, got {self.epochs}")


FULL = Training(
    Layer(8, 0.25, "gelu"),
    [Layer(1), Layer(2, dropout=1.0)],
    Kind.LARGE,
    Path("a/b"),
    epochs=3,
    rate=0.5,
    sizes=(1, 2, 3),
    groups={"head.*": {"lr": 1e-3}},
    flag=True,
    extra=[1, {"a": "b"}],
)


@pytest.mark.parametrize("suffix", ["json", "toml"])
@pytest.mark.parametrize("config", [FULL, Training(Layer(1))], ids=["full", "default"])
def test_files_are_read_as_what_was_written(
    tmp_path: Path, config: Training, suffix: str
) -> None:
    if suffix == "toml":
        pytest.importorskip("tomli_w")
    path = tmp_path / f"config.{suffix}"
    config.save(path)
    loaded = Training.load(path)
    assert loaded == config
    assert type(loaded.rate) is type(config.rate)
    assert isinstance(loaded.layer, Layer)
    assert isinstance(loaded.sizes, tuple)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_missing_fields_have_defaults(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('kind = "LARGE"\nbetas = [1, 0]\n[layer]\nsize = 4\n')
    expected = Training(Layer(4), kind=Kind.LARGE, betas=(1.0, 0.0))
    assert Training.load(path) == expected
    assert type(Training.load(path).betas[0]) is float


def test_copies_with_changes() -> None:
    config = FULL.with_(flag=False, layer__size=9, layer__dropout=0)
    assert (config.flag, config.layer) == (False, Layer(9, 0.0, "gelu"))
    assert (FULL.flag, FULL.layer.size) == (True, 8)
    assert FULL.with_(layer=Layer(7)).layer == Layer(7)
    with pytest.raises(ConfigError, match=r"layer\.sise: Layer has no such field"):
        FULL.with_(layer__sise=1)
    with pytest.raises(ConfigError, match="flag: expected bool, got int 1"):
        FULL.with_(flag=1)
    with pytest.raises(ConfigError, match="kind: expected a Config to change"):
        FULL.with_(kind__a=1)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "layer: Training needs a value, got none"),
        ({"layer": {}}, r"layer\.size: Layer needs a value"),
        ({"layr": 1}, r"layr: Training has no such field, only \['betas'"),
        ({"layer": 3}, "layer: expected a table with the fields of Layer, got int 3"),
        ({"layer": {"size": 2.0}}, r"layer\.size: expected int, got float 2\.0"),
        ({"layer": {"size": True}}, r"layer\.size: expected int, got bool True"),
        (
            {"layers": [{"size": 1}, {"size": "1"}]},
            r"layers\[1\]\.size: expected int, got str '1'",
        ),
        (
            {"layer": {"size": 1, "activation": "tanh"}},
            r"layer\.activation: expected one of \['relu', 'gelu'\], got str 'tanh'",
        ),
        ({"kind": 1}, r"kind: expected one of \['SMALL', 'LARGE'\], got int 1"),
        ({"epochs": "3"}, "epochs: expected int, got str '3'"),
        ({"epochs": 0}, "epochs: expected at least 1, got 0"),
        ({"rate": "x"}, "rate: expected int or float, got str 'x'"),
        ({"betas": [1.0]}, r"betas: expected 2 items, got list \[1\.0\]"),
        ({"sizes": 3}, "sizes: expected tuple, got int 3"),
        ({"groups": {"a": 1}}, r"groups\.a: expected a table, got int 1"),
        ({"folder": 1}, "folder: expected Path, got int 1"),
    ],
)
def test_errors_name_field_expected_and_actual(
    fields: dict[str, Any], message: str
) -> None:
    given = (
        fields if "layer" in fields or not fields else {"layer": {"size": 1}, **fields}
    )
    with pytest.raises(ConfigError, match=message):
        Training.from_dict(given)


def test_errors_of_files_name_the_file(tmp_path: Path) -> None:
    for name, text in (("a.json", "{"), ("a.toml", "= 1"), ("b.json", "[]")):
        path = tmp_path / name
        path.write_text(text)
        with pytest.raises(ConfigError, match=rf"{name}: "):
            Training.load(path)
    with pytest.raises(ConfigError, match=r"expected a file \.json or \.toml"):
        FULL.save(tmp_path / "a.yaml")
    path.write_bytes(b"\xff")
    with pytest.raises(ConfigError, match=r"b\.json: 'utf-8'"):
        Training.load(path)


@dataclass(frozen=True)
class Limited(Config):
    """A field that is None although its default is not."""

    limit: int | None = 3
    value: Any = 0


def test_what_would_be_read_differently_is_not_written(tmp_path: Path) -> None:
    pytest.importorskip("tomli_w")
    path = tmp_path / "a.toml"
    with pytest.raises(ConfigError, match="would not be read as the same"):
        Limited(limit=None).save(path)
    with pytest.raises(ConfigError, match="value: expected a value that JSON can hold"):
        Limited(value={1}).save(path)
    with pytest.raises(ConfigError, match="would not be read as the same"):
        Limited(value=(1, 2)).save(tmp_path / "a.json")
    assert not list(tmp_path.iterdir())
    Limited(limit=None).save(tmp_path / "a.json")
    assert Limited.load(tmp_path / "a.json").limit is None


def test_writing_toml_needs_tomli_w(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tomli_w", None)
    with pytest.raises(ImportError, match=r"burn-runtime\[toml\]"):
        FULL.save(tmp_path / "a.toml")


@dataclass(frozen=True)
class Unsupported(Config):
    """A field of a type that no file has."""

    value: complex = 0


class Plain(Config):
    """No dataclass."""


def test_classes_that_cannot_be_read_are_refused() -> None:
    with pytest.raises(TypeError, match="value: fields of type .*complex"):
        Unsupported.from_dict({"value": 1})
    with pytest.raises(TypeError, match="Plain: expected @dataclass"):
        Plain.from_dict({})
