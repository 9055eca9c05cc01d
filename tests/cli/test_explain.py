"""The command ``explain``, and its agreement with the docs and with the messages."""

import json
import re
from pathlib import Path

import pytest

from burn_import.cli.explanations import EXPLANATIONS, Explanation, text_of
from burn_import.cli.report import KINDS
from tests.cli.commands import run
from tests.test_house import ROOT

PAGE = (ROOT / "docs" / "troubleshooting.md").read_text("utf-8")
CODES = [explanation.code for explanation in EXPLANATIONS]


def test_the_codes_are_listed_one_a_line() -> None:
    answer = run("explain")
    assert answer.exit_code == 0
    head, *lines = answer.stdout.splitlines()
    assert head.split() == ["code", "exit", "meaning"]
    assert [line.split()[0] for line in lines] == CODES
    assert max(map(len, lines)) <= 80


def test_every_code_that_is_printed_is_explained() -> None:
    printed = {*KINDS.values(), "options", "output", "internal", "interrupted"}
    assert printed == set(CODES)
    assert {(code, kind) for code, kind in KINDS.items()} <= {
        (e.exit_code, e.code) for e in EXPLANATIONS
    }


@pytest.mark.parametrize("explanation", EXPLANATIONS, ids=CODES)
def test_the_docs_have_what_is_printed(explanation: Explanation) -> None:
    answer = run("explain", explanation.code)
    assert (answer.exit_code, answer.stderr) == (0, "")
    assert answer.stdout == f"{text_of(explanation)}\n"
    assert f"### {answer.stdout}" in PAGE
    assert explanation.causes and explanation.remedies
    assert max(map(len, answer.stdout.splitlines())) <= 88


def test_the_table_of_the_docs_has_the_codes() -> None:
    cells = re.findall(r"^\| (\d+) \| (`.*?`) \| ", PAGE, re.MULTILINE)
    listed = {
        (int(number), kind) for number, kinds in cells for kind in kinds.split(", ")
    }
    assert listed == {(e.exit_code, f"`{e.code}`") for e in EXPLANATIONS}
    assert re.findall(r"^### `(\w+)`", PAGE, re.MULTILINE) == CODES


@pytest.mark.parametrize("word", ["error[invalid]:", "error[invalid]", "INVALID", "5"])
def test_a_code_is_found_as_it_is_printed(word: str) -> None:
    assert run("explain", word).stdout == run("explain", "invalid").stdout


def test_an_exit_code_of_several_kinds_and_json() -> None:
    text = run("explain", "2").stdout
    for code in ("refused", "output", "options"):
        assert f"`{code}` (exit code 2)\n" in text
    rows = json.loads(run("explain", "2", "--format", "json").stdout)["codes"]
    assert [row["code"] for row in rows] == ["refused", "output", "options"]
    rows = json.loads(run("explain", "--format", "json").stdout)["codes"]
    assert [row["code"] for row in rows] == CODES


def test_a_code_that_is_misspelt_is_answered() -> None:
    answer = run("explain", "unsuported")
    assert answer.exit_code == 2 and "did you mean unsupported?" in answer.stderr
    answer = run("explain", "zzz")
    assert answer.exit_code == 2 and "codes: refused, output" in answer.stderr


def test_errors_name_the_command_once(tmp_path: Path) -> None:
    net = tmp_path / "net.onnx"
    net.write_bytes(b"")
    answer = run(net)
    assert answer.stderr.splitlines()[-1] == "see: burn-import explain unreadable"
    assert answer.stderr.count("explain") == 1
    for style in ("json", "github"):
        assert "explain" not in run(net, "--format", style).stderr
