"""Hostile files end soon and take little memory, whatever they ask for."""

from pathlib import Path

from tests.importer.limits import check, taken
from tests.importer.pytorch_files import zip_file
from tests.importer.test_pytorch_damaged import WRONG, ZIPS
from tests.importer.test_pytorch_hostile import BOMBS, PAYLOADS
from tests.runtime.test_record_of_burn import HOSTILE


def test_every_hostile_file(tmp_path: Path) -> None:
    roots = {
        **PAYLOADS,
        **{name: root for name, (root, _) in {**BOMBS, **WRONG}.items()},
    }
    files = {name: zip_file(root) for name, root in roots.items()}
    files |= {name: content for name, (content, _) in ZIPS.items()}
    files |= {name: make() for name, (make, _) in HOSTILE.items()}
    paths = []
    for number, (name, content) in enumerate(files.items()):
        paths.append(tmp_path / f"{number} {name.replace('/', ' ')}")
        paths[-1].write_bytes(content)
    print(check(paths))


def test_what_a_file_takes_is_measured(tmp_path: Path) -> None:
    small, large = tmp_path / "small.json", tmp_path / "large.json"
    small.write_text('{"metadata": {}, "item": {}}')
    large.write_text('{"metadata": {}, "item": [' + "1000," * 1_000_000 + "1]}")
    less, more = taken([small, large])
    assert more.peak - less.peak > 15_000 and more.seconds > less.seconds
    assert (less.code, more.code) == (1, 1)
