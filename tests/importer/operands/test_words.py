"""Many strings as one text that is split."""

import ast

import pytest
from hypothesis import given, settings, strategies as st

from burn_import.codegen.gate.gate import check_body
from burn_import.tracing.identifiers import literal, words_literal
from tests.sampling import emission_count

HEAD = "from burn import ops\n\n\ndef f() -> None:\n"
ANY_WORDS = st.lists(st.text(max_size=12) | st.sampled_from(",|;/ \n\x85"), max_size=40)


@settings(max_examples=emission_count())
@given(ANY_WORDS)
def test_the_source_gives_the_words(words: list[str]) -> None:
    text = words_literal(words)
    assert eval(text, {"__builtins__": {}}) == words
    source = (
        f"import burn\nfrom burn import ops\n\n\ndef f() -> None:\n    x = {text}\n"
    )
    check_body(source.replace(f"x = {text}", f"x = ops.array({text})").encode())


@pytest.mark.parametrize(
    ("words", "end"),
    [
        (["to", "be"] * 5, ".split()"),
        ([" ", "a"] * 5, ".split(',')"),
        (["", ","] * 5, ".split('|')"),
        ([",|;/", " "] * 5, "]"),
        (["to", "be"], "]"),
    ],
)
def test_where_it_is_split(words: list[str], end: str) -> None:
    text = words_literal(words)
    assert text.endswith(end)
    assert (text == literal(words)) is (end == "]")


def test_lines_are_short() -> None:
    text = words_literal([f"word{number}" for number in range(200)])
    (call,) = (n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Call))
    assert isinstance(call.func, ast.Attribute)
    assert max(map(len, text.split("' '"))) < 80
