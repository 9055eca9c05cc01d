"""The source check accepts generated source and rejects other constructs."""

import pytest

from burn.ops.names import NAMES
from burn_import.codegen.gate.allowed import public
from burn_import.codegen.gate.gate import UnsafeSource, check, check_body
from burn_import.output import header

SOURCE = '''"""Net: x -> y."""

import math
from pathlib import Path
import burn
from burn import Tensor, nn, ops


class Net(nn.Module):
    """A net."""

    WEIGHTS = Path(__file__).with_name("net.safetensors")

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(2))
        self.named = nn.Linear(4, 4)
        self.scale = nn.buffer(4, dtype=burn.float16)

    @nn.check_inputs(x="float32[2 * batch, ?, 8]", y="list[float32[...]] | None")
    def __call__(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        batch, size = x.shape
        for layer in self.layers:
            x = layer(x)
        for block, part in zip(self.blocks[1:], (x, x), strict=True):
            x = block.inner(part)
            for inner in block.parts:
                x = inner.layer(x)
        if x.sum() > math.inf:
            x = ops.pad(self.named(x), ((0, 0), (1, 1)), mode="edge")[:batch, 1:-1]
        labels = ops.array(["any \\" text\\n"], dtype=burn.string)
        labels = ops.array(("a,b," "c").split(","), dtype=burn.string)
        return ops.where(x != x, float("nan"), x * self.scale.value).reshape(-1, size)
'''
PATH = 'WEIGHTS = Path(__file__).with_name("net.safetensors")'
AT = "        batch, size = x.shape\n"


EMBEDDED = 'Net.WEIGHTS = b64decode("AAAA")\n'


def embedding(statement: str) -> bytes:
    """The source with an embedded record, given to its class by ``statement``."""
    source = SOURCE.replace("from pathlib import Path", "from base64 import b64decode")
    return f"{source.replace(f'    {PATH}', '')}\n\n{statement}".encode()


def test_what_the_compiler_means_to_write_passes() -> None:
    check_body(SOURCE.encode())
    check_body(embedding(EMBEDDED))
    check((header("net.onnx (opset 17)", "0" * 64, "0" * 64, SOURCE) + SOURCE).encode())


def test_a_member_of_a_list_is_nothing_else_in_its_function() -> None:
    loop = "        for other in self.layers:\n            x = other.backend\n"
    check_body(
        SOURCE.replace(AT, AT + loop).replace("other.backend", "other.b").encode()
    )
    mixed = loop + "        other = x\n"
    with pytest.raises(UnsafeSource, match="backend"):
        check_body(SOURCE.replace(AT, AT + mixed).encode())


@pytest.mark.parametrize(
    "statement",
    [
        "for block in self.blocks:\n            x = block.boxes()",
        "x = x.split(',')",
        "x = 'a b'.split('a b')",
        "x = 'a b'.join(x)",
        "for block in self.blocks:\n            x = block.load_weights(x)",
        "for block in self.blocks:\n            x = block._items(x)",
        "for block in (x, x):\n            x = block.backend",
        "for y in self.blocks:\n            x = y.backend",
        "for z in x:\n            x = z.backend",
        "__import__('os')",
        "x = __import__('os').getcwd()",
        "x = eval('1')",
        "x = open('f')",
        "x = getattr(x, 'data')",
        "x = x.__class__",
        "x = self._private",
        "x = self.save_weights(x)",
        "x = ops.window",
        "x = ops.np",
        "x = burn.record",
        "x = nn.module",
        "x = ops",
        "x = math.os",
        "x = x.data",
        "x = x.numpy()",
        "x = (lambda: x)()",
        "x = [y for y in x]",
        "x = f'{x}'",
        "x = b'bytes'",
        "x = 1j",
        "x = 'stray string'",
        "x = ops.pad(x, mode='a b')",
        "x = ops.pad(**x)",
        "x = ops.concat(*x)",
        "x = float('inf')",
        "x = Path('f')",
        "x = Path(__file__).with_name('../f')",
        "x = Path(__file__).unlink()",
        "x = unbound",
        "x = (x := y)",
        "x.shape = y",
        "eval = x",
        "ops = x",
        "_hidden = x",
        "import os",
        "from os import path",
        "import burn as b",
        "del x",
        "global x",
        "assert x",
        "raise x",
        "yield x",
        "with x: pass",
        "try: pass\n        finally: pass",
        "x.sum()",
        "def inner(): pass\n        x = inner.__globals__",
        "x = batch[0](x)(x)",
    ],
)
def test_anything_else_is_named_with_its_line(statement: str) -> None:
    source = SOURCE.replace(AT, f"{AT}        {statement}\n")
    assert source != SOURCE
    with pytest.raises(UnsafeSource, match="generated source, line") as caught:
        check_body(source.encode())
    line = SOURCE[: SOURCE.index(AT)].count("\n") + 2
    assert caught.value.line in (line, line + 1) and caught.value.construct


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("class Net(nn.Module)", "class Net(nn.Module, metaclass=Path)"),
        ("class Net(nn.Module)", "class Net(nn.Linear)"),
        (PATH, 'names = {"a_": "a"}'),
        (PATH, 'record_names = {"a_": WEIGHTS}'),
        (PATH, 'record_names = {"a_": "a b"}'),
        (PATH, 'record_prefix = "a b"'),
        (PATH, "record_prefix = WEIGHTS"),
        (PATH, 'WEIGHTS = Path(__file__).with_name("../net.safetensors")'),
        (PATH, "WEIGHTS = Path(__file__)"),
        (PATH, "WEIGHTS = ops"),
        ("class Net(nn.Module)", "@classmethod\nclass Net(nn.Module)"),
        ("    def __init__", "    @staticmethod\n    def __init__"),
        ("def __call__", "def __getattr__"),
        ("def __call__", "def forward"),
        ('"float32[2 * batch, ?, 8]"', "'a:b'"),
        ('"float32[2 * batch, ?, 8]"', "Path"),
        ('(x="float32', '("float32[2]", x="float32'),
        ("@nn.check_inputs(", "@nn.parameter("),
        ("@nn.check_inputs(", "@nn.check_inputs(**"),
        ("import math\n", ""),
        ("import math\n", "import os\n"),
        ("class Net", "print(1)\nclass Net"),
        ("Net: x", "Net:\r x"),
        ("Net: x", "Net: \N{RIGHT-TO-LEFT OVERRIDE}x"),
        ("Net: x", "Net: \0x"),
        ("return ops.where(", "return ops.where(("),
    ],
)
def test_the_frame_is_fixed(old: str, new: str) -> None:
    assert old in SOURCE
    with pytest.raises(UnsafeSource):
        check_body(SOURCE.replace(old, new, 1).encode())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Net.", "Other."),
        ("Net.", "nn."),
        ("Net.WEIGHTS", "Net.load"),
        ("Net.WEIGHTS", "Net.a.WEIGHTS"),
        ('b64decode("AAAA")', 'b64decode("A A")'),
        ('b64decode("AAAA")', "Net"),
    ],
)
def test_only_a_class_is_given_a_record(old: str, new: str) -> None:
    with pytest.raises(UnsafeSource):
        check_body(embedding(EMBEDDED.replace(old, new)))


@pytest.mark.parametrize(
    "lines",
    ["", "# Imported by burn-import 1 from x.\n", "# -*- coding: utf-7 -*-\n"],
)
def test_the_header_is_fixed(lines: str) -> None:
    with pytest.raises(UnsafeSource, match="header"):
        check((lines + SOURCE).encode())
    good = header("x", "0" * 64, "0" * 64, SOURCE).replace(
        "from x.", "from coding: utf-7."
    )
    with pytest.raises(UnsafeSource, match="header"):
        check((good + SOURCE).encode())


def test_a_large_module_is_checked_in_time() -> None:
    lines = "".join(f"        x = x + {number}\n" for number in range(20_000))
    check_body(SOURCE.replace(AT, AT + lines).encode())


def test_operations_are_allowed_and_helpers_of_their_package_are_not() -> None:
    names = public()
    assert names["ops"] == {name for group in NAMES.values() for name in group}
    assert not {"lazy_names", "public_names", "__getattr__"} & names["nn"]
    assert {"Linear", "Module", "inference"} <= names["nn"]
