"""Statements that are formatted alone look as black formats them in their module."""

import pytest

from burn_import.codegen.module.formatting import format_emitted, format_source

HEAD = '"""Net: x -> y."""\n\nfrom burn import Tensor, nn, ops\n\n\n'
CLASS = 'class Net(nn.Module):\n    """A network."""\n\n'
CALL = "    def __call__(self, x: Tensor) -> Tensor:\n"
LONG = ", ".join(f"x.transpose({i}, {i + 1})" for i in range(9))
STATEMENTS = (
    f"return ops.concat([{LONG}], axis=0)  # [9, 3]",
    f"for a, b in zip([{LONG}], self.layers, strict=True):\n            x = a(b)",
    f"if x.shape[0] == 1 and ops.all(ops.concat([{LONG}])):\n            x = x + 1",
    f"if x:\n            pass\n        elif ops.all([{LONG}]):\n            x = x + 1",
    "a, = ops.chunk(x, count=1)",
    "for a, in x:\n            pass",
    "return x,",
    "return (x)",
    "x = ops.gelu(x, approximate='tanh') * 1e+20",
    "x = x[1:x.shape[0] + 1] ** 2",
    "x = ops.lookup(x, ['\"\"\"', '{}'])".format("a" * 80),
    "x = ops.lookup(x, 'it\\'s')",
)
CHECKS = (
    "x='float32[2]'",
    "x='float32[2]',  # X in the file\n        y='int64[3]'",
    ",\n        ".join(f"x{i}='float32[batch, 2, 3]'" for i in range(9)),
)


@pytest.mark.parametrize("statement", STATEMENTS)
def test_statements(statement: str) -> None:
    text = f"{HEAD}{CLASS}{CALL}        {statement}\n"
    assert format_emitted(text) == format_source(text) != text


@pytest.mark.parametrize("rows", CHECKS)
def test_the_decorator_of_input_types(rows: str) -> None:
    decorator = f"    @nn.check_inputs(\n        {rows}\n    )\n"
    text = f"{HEAD}{CLASS}{decorator}{CALL}        return x\n"
    assert format_emitted(text) == format_source(text) != text


@pytest.mark.parametrize("doc", ["a " * 50, " a", "a ", "\\a", '"b" a'])
def test_docstrings(doc: str) -> None:
    text = f'{HEAD}class Net(nn.Module):\n    """{doc}"""\n\n{CALL}        return x\n'
    assert format_emitted(text) == format_source(text)


def test_surplus_lines_between_classes() -> None:
    part = f"{CLASS}    def __init__(self) -> None:\n        super().__init__()\n\n"
    text = f"{HEAD}{part}\n\n{part.replace('Net', 'Other')}"
    assert format_emitted(text) == format_source(text) != text
