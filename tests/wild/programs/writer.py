"""Writer of random programs: statements that work on two sizes are kept."""

from __future__ import annotations

import random
import re
from typing import Any

import torch
from torch import nn

from tests.wild.entry import Case
from tests.wild.programs import expressions
from tests.wild.programs.body import Body
from tests.wild.programs.layers import IDIOMS, LAYERS
from tests.wild.programs.shapes import SHAPES

NAMES = ("x", "y", "z", "out", "u", "res", "feat", "logits", "tokens", "attn", "skip")
LAYER_NAMES = ("fc", "proj", "norm", "layer", "head", "conv", "block", "mix", "gate")
CLASS_NAMES = ("Block", "Layer", "Encoder", "Mixer", "Cell", "Unit", "Stage")
#: Kinds of statements, and how often each is tried.
KINDS = {
    "unary": 3.0,
    "binary": 4.0,
    "shape": 8.0,
    "layer": 7.0,
    "idiom": 3.0,
    "int": 1.5,
    "mask": 0.7,
}
POOLS = {
    "unary": expressions.UNARY,
    "binary": expressions.BINARY,
    "int": expressions.INTEGERS,
    "mask": expressions.MASKS,
}
#: How a block is made and called: once; several blocks, or one several times.
CALLS = (
    ("{name}()", "{s}({x})"),
    ("nn.Sequential({name}(), {name}())", "{s}({x})"),
    ("nn.ModuleList([{name}() for _ in range({n} + 1)])", "out = {x}\n" + """\
for layer in {s}:
    out = layer(out)"""),
    ("nn.ModuleList([{name}() for _ in range({n} + 1)])", "out = {x}\n" + """\
for layer in {s}:
    out = out + {f} * layer(out)"""),
    ("{name}()", "{s}({s}({x}))"),
    ("{name}()", "out = {x}\nfor _ in range({n} + 1):\n    out = {s}(out)"),
    ("{name}()", "{s}({x}) * {s}({y})"),
)  # fmt: skip
#: Tries for each statement of a class, and the largest number of blocks.
TRIES, MOST_BLOCKS = 12, 4


class Writer:
    """A random program; the same seed gives the same text."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.space: dict[str, Any] = _imports()
        self.classes: list[str] = []
        torch.manual_seed(seed)

    def program(self) -> tuple[str, tuple[Any, ...], tuple[Any, ...]]:
        """Return the source of the class ``Net`` and its inputs of two sizes."""
        small, large = self._inputs()
        parameters = ("x", "other")[: len(small)]
        body = self._body("Net", parameters, (small, large), self.rng.randint(3, 9))
        unread = [name for name in body.floats() if not _is_read(body, name)]
        count = self.rng.choice((1, 1, 2, 3))
        results = unread[-count:] or body.floats()[-1:] or list(parameters[:1])
        body.result = ", ".join(results)
        return "".join([*self.classes, body.source()]), small, large

    def _inputs(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Return tensors of two sizes, which can be equal: an image, a sequence..."""
        rng = self.rng
        kind = rng.choice(("image", "image", "sequence", "sequence", "rows", "tokens"))
        batch, channels = rng.choice((1, 2, 2, 3)), rng.choice((3, 4, 6, 8))
        grown, longer = batch + rng.choice((0, 1, 2)), rng.choice((0, 0, 2, 4))
        shapes: tuple[tuple[int, ...], tuple[int, ...]]
        if kind == "image":
            h, w = rng.choice(((8, 8), (8, 12), (6, 10)))
            shapes = (batch, channels, h, w), (grown, channels, h + longer, w)
        elif kind == "rows":
            shapes = (batch + 1, 2 * channels), (grown + 1, 2 * channels)
        else:
            length = rng.choice((4, 5, 6))
            shapes = (batch, length, channels), (grown, length + longer, channels)
        if kind == "tokens":
            small, large = ((torch.randint(0, 16, shape[:2]),) for shape in shapes)
            return small, large
        second = rng.choices(("", "floats", "mask"), (6, 2.5, 1.5))[0]
        small, large = (_tensors(shape, second) for shape in shapes)
        return small, large

    def _body(
        self, name: str, parameters: tuple[str, ...], inputs: Any, count: int
    ) -> Body:
        """Return a class of ``count`` statements, if so many can be found."""
        small, large = (dict(zip(parameters, one, strict=True)) for one in inputs)
        body = Body(name, parameters, (small, large))
        for _ in range(count * TRIES):
            if len(body.forward) >= count:
                break
            if name == "Net" and self.rng.random() < 0.2:
                self._add_block(body)
            else:
                self._add_statement(body)
        return body

    def _add_statement(self, body: Body) -> None:
        """Try one random statement."""
        operand = self._pick(body, "float")
        kind = self.rng.choices(list(KINDS), list(KINDS.values()))[0]
        if operand is None:
            kind = "layer" if kind in ("layer", "idiom") else "int"
        rank = str(body.values[0][operand].dim()) if operand else "i"
        init, text = self._template(body, kind, rank)
        self._try(body, operand, init, text)

    def _template(self, body: Body, kind: str, rank: str) -> tuple[str, str]:
        """Return a template: the layer that it makes, or "", and its text."""
        if kind == "shape":
            return "", self._of_rank(SHAPES, rank)[1]
        if kind == "layer":
            init, _, text = self._of_rank(LAYERS, rank)[1].partition(" => ")
            return init, text or "{s}({x})"
        if kind == "idiom":
            _, init, text = self._of_rank(IDIOMS, rank)
            return init, text
        pool = POOLS[kind]
        if kind == "int" and self._pick(body, "int") is not None:
            pool = (*pool * (rank != "i"), *expressions.INTEGERS_OF_INTEGERS)
        return "", self.rng.choice(pool)

    def _of_rank(self, pool: Any, rank: str) -> Any:
        fitting = [one for one in pool if rank in one[0] or one[0] == "*"]
        return self.rng.choice(fitting or pool)

    def _pick(self, body: Body, kind: str) -> str | None:
        """Return the name of a tensor, a late one more often."""
        dtypes = {
            "float": (torch.float32,),
            "int": (torch.int64, torch.int32),
            "mask": (torch.bool,),
        }[kind]
        names = [n for n, v in body.values[0].items() if v.dtype in dtypes]
        weights = [2.0 ** min(k, 6) for k in range(len(names))]
        return self.rng.choices(names, weights)[0] if names else None

    def _try(self, body: Body, operand: str | None, init: str, text: str) -> bool:
        """Fill in a template and add it; return whether it works."""
        fills = self._fills(body, operand)
        if any(f"{{{key}}}" in text for key, value in fills.items() if value is None):
            return False
        layer = ""
        if init:
            layer = body.free_name(self.rng.choice(LAYER_NAMES))
            fills["s"] = f"self.{layer}"
            init = f"self.{layer} = {init.format(**fills)}"
        text = text.format(**fills)
        target = "out"
        if re.search(r"^ *out = ", text, re.M) is None:
            is_new = self.rng.random() < 0.7
            target = self.rng.choice(NAMES) if is_new else operand or "x"
            text = f"{target} = {text}"
        return body.add(layer, init, text, target, self.space)

    def _fills(self, body: Body, operand: str | None) -> dict[str, Any]:
        rng = self.rng
        shape = tuple(body.values[0][operand].shape) if operand else (1,)
        rank = len(shape)
        axes = [rng.randrange(rank) for _ in range(2)]
        if rank > 1 and rng.random() < 0.8:
            axes = [rng.randrange(1, rank), axes[0]]
        d, e = (axis - rank if rng.random() < 0.4 else axis for axis in axes)
        return {
            "x": operand,
            "y": self._other(body, operand),
            "d": d,
            "e": e,
            "i": self._pick(body, "int"),
            "m": self._pick(body, "mask"),
            "C": shape[-1],
            "c": shape[1] if rank > 1 else 1,
            "n": rng.choice((1, 2, 2, 3, 4)),
            "w": rng.choice((2, 4, 4, 8)),
            "f": rng.choice((0.1, 0.25, 0.5, 0.7, 1.0, 1.5)),
        }

    def _other(self, body: Body, operand: str | None) -> str | None:
        """Return a float tensor, of the same shape in most cases."""
        if operand is None or self.rng.random() < 0.3:
            return self._pick(body, "float")
        values = body.values[0]
        shape = values[operand].shape
        return self.rng.choice([n for n in body.floats() if values[n].shape == shape])

    def _add_block(self, body: Body) -> None:
        """Try a class of its own, in one of the forms of ``CALLS``."""
        rng, operand = self.rng, self._pick(body, "float")
        if operand is None or len(self.classes) >= MOST_BLOCKS:
            return
        name = rng.choice(CLASS_NAMES) + (str(len(self.classes)) or "")
        inputs = [(values[operand],) for values in body.values]
        block = self._body(name, ("x",), inputs, rng.randint(1, 5))
        if not block.forward or not block.floats():
            return
        block.result = block.floats()[-1]
        exec(block.source(), self.space)
        layer, text = rng.choice(CALLS)
        if self._try(body, operand, layer.replace("{name}", name), text):
            self.classes.append(block.source())


def _tensors(shape: tuple[int, ...], second: str) -> tuple[Any, ...]:
    """Return one tensor, or two with one of floats or bools."""
    first = torch.randn(shape)
    if second == "floats":
        return first, torch.randn(shape)
    return (first, torch.rand(shape[:2]) > 0.3) if second else (first,)


def _is_read(body: Body, name: str) -> bool:
    """Return whether a statement reads the last value of ``name``."""
    for statement in reversed(body.forward):
        *_, last = statement.splitlines()
        if statement.startswith(f"{name} = ") or last.startswith(f"{name} = "):
            return False
        if re.search(rf"\b{name}\b", statement):
            return True
    return True  # a parameter


def _imports() -> dict[str, Any]:
    return {"torch": torch, "nn": nn, "F": nn.functional, "__name__": "program"}


def build_program(seed: int) -> tuple[str, Case]:
    """Return the source and the case of the program of ``seed``."""
    source, small, large = Writer(seed).program()
    return source, case_of(source, small, large)


def case_of(source: str, small: tuple[Any, ...], large: tuple[Any, ...]) -> Case:
    """Return the case of the class ``Net`` in ``source``."""
    space = _imports()
    torch.manual_seed(0)
    exec(source, space)
    grows = any(a.shape != b.shape for a, b in zip(small, large, strict=True))
    return Case(space["Net"]().eval(), small, large if grows else None)
