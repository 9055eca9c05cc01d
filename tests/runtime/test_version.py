"""What a generated module says on a runtime that is older than it needs."""

import sys
from pathlib import Path

import pytest

import burn
from burn.version import VERSION
from burn_import.version import OLDEST_RUNTIME
from tests.modules import import_file

SMALL = "import burn\nburn.require_version({!r})\nfrom burn import future\n"


@pytest.mark.parametrize("oldest", ["0.0.9", "0.1", VERSION, OLDEST_RUNTIME])
def test_this_version_is_enough(oldest: str) -> None:
    burn.require_version(oldest)


@pytest.mark.parametrize("oldest", ["0.1.1", "0.12", "1"])
def test_an_old_runtime_is_named_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, oldest: str
) -> None:
    monkeypatch.setattr("burn.version.VERSION", "0.1.0")
    path = tmp_path / "net.py"
    path.write_text(SMALL.format(oldest))
    with pytest.raises(ImportError) as failure:
        import_file(path)
    assert str(failure.value) == (
        f"net needs burn-runtime {oldest} or newer, got 0.1.0: "
        f"pip install --upgrade 'burn-runtime>={oldest}'"
    )
    sys.modules.pop("net", None)


def test_numbers_are_compared_and_not_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("burn.version.VERSION", "0.10.0.dev3")
    burn.require_version("0.9.1")
    with pytest.raises(ImportError, match=r"got 0\.10\.0\.dev3"):
        burn.require_version("0.11")
