"""Weights in several files, loaded into modules that were written by hand."""

import json
from pathlib import Path
from typing import Any

import pytest

from burn.record import RecordError, write_record
from burn.store import Store
from tests.runtime.store.test_store import WHOLE, Head, loaded, same, state


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    """The index of a record in two files."""
    arrays = list(state().items())
    weight_map: dict[str, str] = {}
    for name, part in {"a": arrays[:3], "b": arrays[3:]}.items():
        write_record(tmp_path / f"{name}.safetensors", part)
        weight_map |= {key: f"{name}.safetensors" for key, _ in part}
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": weight_map}))
    return index


def test_shards_are_loaded(shards: Path) -> None:
    same(loaded(Store.from_file(shards)), WHOLE)


@pytest.mark.parametrize(
    ("weight_map", "message"),
    [
        ({"a": "../a.safetensors"}, "expected the name of a file beside the index"),
        ({"a": 3}, "expected the name of a file beside the index, got 3"),
        ({"a": "c.safetensors"}, "there is no such file beside the index"),
        ({"table": "a.safetensors"}, "tensor 'table': not in 'a.safetensors'"),
        ([], "with a weight_map"),
    ],
)
def test_an_index_that_is_wrong(shards: Path, weight_map: Any, message: str) -> None:
    shards.write_text(json.dumps({"weight_map": weight_map}))
    with pytest.raises(RecordError, match=message):
        Store.from_file(shards).load(Head())
