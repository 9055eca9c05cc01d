"""The package with a build hook is built and runs out of its wheel."""

from typing import Any

import pytest


@pytest.mark.thorough
@pytest.mark.parametrize("example", ["packages"], indirect=True)
@pytest.mark.parametrize("system", ["hatchling", "setuptools", "pdm"])
def test_the_package_reads_digits(
    example: Any, system: str, capfd: pytest.CaptureFixture[str]
) -> None:
    backend = {"pdm": "pdm.backend"}.get(system, system)
    reason = f"{backend} is of the extra dev and not installed"
    pytest.importorskip("build", reason=reason)
    pytest.importorskip(backend, reason=reason)
    printed = example.main(system)
    assert printed.count("this is a") == 3
    assert "this is a 1" in printed
    listed = capfd.readouterr().out
    assert "  digit_reader/net.py" in listed
    assert "  digit_reader/net.safetensors" in listed
    project = example.OUT / system
    assert (project / "src" / "digit_reader" / "net.py").is_file()


@pytest.mark.parametrize("example", ["packages"], indirect=True)
def test_an_unknown_build_system_is_refused(example: Any) -> None:
    with pytest.raises(SystemExit, match="expected hatchling, setuptools, pdm, got x"):
        example.main("x")
