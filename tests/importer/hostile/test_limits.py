"""Malicious files are refused quickly and with little memory."""

from pathlib import Path

import pytest

from benchmarks.importer.checkpoints import sparse_checkpoint
from burn.record import read_record
from tests.importer.checkpoints.test_damaged import WRONG, ZIPS
from tests.importer.checkpoints.test_hostile import BOMBS, PAYLOADS
from tests.importer.limits import check, converting, taken
from tests.importer.pytorch_files import zip_file
from tests.pace import within
from tests.runtime.record.test_limits import HEADERS
from tests.runtime.record.test_of_burn import HOSTILE


@pytest.mark.thorough
def test_every_hostile_file(tmp_path: Path) -> None:
    roots = {
        **PAYLOADS,
        **{name: root for name, (root, _) in {**BOMBS, **WRONG}.items()},
    }
    files = {name: zip_file(root) for name, root in roots.items()}
    files |= {name: content for name, (content, _) in ZIPS.items()}
    files |= {name: make() for name, (make, _) in {**HOSTILE, **HEADERS}.items()}
    paths = []
    for number, (name, content) in enumerate(files.items()):
        paths.append(tmp_path / f"{number} {name.replace('/', ' ')}")
        paths[-1].write_bytes(content)
    print(check(paths))


@pytest.mark.parametrize("kind", ["safetensors", "mpk.gz"])
@pytest.mark.thorough
def test_a_large_checkpoint_goes_through_little_memory(
    kind: str, tmp_path: Path
) -> None:
    source = sparse_checkpoint(tmp_path / "net.pt", 260_000_000)
    target = tmp_path / f"net.{kind}"
    assert converting(source, target) < 150 * 2**20 < source.stat().st_size
    record = read_record(target, most_inflated=300_000_000)
    assert [array.shape for array in record.values()] == [(4096, 8192)] * 2


def test_what_a_file_takes_is_measured(tmp_path: Path) -> None:
    small, large = tmp_path / "small.json", tmp_path / "large.json"
    small.write_text('{"metadata": {}, "item": {}}')
    large.write_text('{"metadata": {}, "item": [' + "1000," * 1_000_000 + "1]}")
    less, more = taken([small, large])
    assert more.peak - less.peak > 15_000 and more.seconds > less.seconds
    assert (less.code, more.code) == (1, 1)


def test_what_takes_longer_than_its_limit_is_told() -> None:
    with pytest.raises(AssertionError, match="s, of "), within(1e-6):
        sum(range(100_000))
    with within(60):
        sum(range(100_000))
