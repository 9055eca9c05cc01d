"""Writer of random programs: statements are tried on two sizes and kept if they work."""

from __future__ import annotations

import random
import re
import string
import warnings
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from tests.wild.entry import Case
from tests.wild.programs import templates

#: Elements and magnitudes beyond which a statement is dropped.
LARGEST_TENSOR, LARGEST_VALUE = 20_000, 50.0
#: The standard deviation over the largest element below which only rounding is compared.
SMALLEST_SPREAD = 1e-2
NAMES = ("x", "y", "z", "out", "u", "res", "feat", "logits", "tokens", "attn", "skip")
LAYER_NAMES = ("fc", "proj", "norm", "layer", "head", "conv", "block", "mix", "gate")


@dataclass
class Body:
    """One class: the lines of ``__init__`` and ``forward``, and the values by name.

    ``values`` has one namespace for each of the two sizes of inputs.
    """

    name: str
    parameters: tuple[str, ...]
    values: tuple[dict[str, Any], dict[str, Any]]
    module: nn.Module = field(default_factory=nn.Module)
    init: list[str] = field(default_factory=list)
    forward: list[str] = field(default_factory=list)
    result: str = "x"

    def source(self) -> str:
        """Return the text of the class."""
        lines = [f"class {self.name}(nn.Module):", "    def __init__(self):"]
        lines += ["        super().__init__()", *(f"        {s}" for s in self.init)]
        lines += ["", f"    def forward(self, {', '.join(self.parameters)}):"]
        for statement in (*self.forward, f"return {self.result}"):
            lines += [f"        {line}" for line in statement.splitlines()]
        return "\n".join(lines) + "\n\n\n"


def _is_kept(value: Any) -> bool:
    if not isinstance(value, torch.Tensor) or value.is_complex():
        return False
    if not 0 < value.numel() <= LARGEST_TENSOR or not 0 < value.dim() <= 5:
        return False
    if value.is_floating_point():
        if value.dtype != torch.float32:
            return False
        largest = float(value.abs().max())
        is_varied = value.numel() == 1 or float(value.std()) > SMALLEST_SPREAD * largest
        return is_varied and largest < LARGEST_VALUE  # false for NaN
    return True


class Writer:
    """A random program; the same seed gives the same text."""

    def __init__(self, seed: int):
        self.rng = random.Random(seed)
        self.space: dict[str, Any] = {"torch": torch, "nn": nn, "F": F}
        self.classes: list[str] = []
        torch.manual_seed(seed)

    def program(self) -> tuple[str, tuple[Any, ...], tuple[Any, ...]]:
        """Return the source of ``Net`` and its inputs of two sizes."""
        small, large = self._inputs()
        names = tuple(string.ascii_lowercase[23 - k] for k in range(len(small)))[::-1]
        if len(small) == 1:
            names = ("x",)
        body = self._body("Net", names, small, large, self.rng.randint(3, 9), True)
        floats = [n for n, v in body.values[0].items() if _is_kept(v)]
        unused = [n for n in floats if not self._is_read_later(body, n)]
        last = unused[-self.rng.choice((1, 1, 2, 3)) :] or floats[-1:] or list(names[:1])
        body.result = ", ".join(last)
        self.classes.append(body.source())
        return "".join(self.classes), small, large

    @staticmethod
    def _is_read_later(body: Body, name: str) -> bool:
        if name in body.parameters:
            return True
        for statement in reversed(body.forward):
            target, _, text = statement.rpartition(f"\n{name} = ")
            if not target and statement.startswith(f"{name} = "):
                return False
            if re.search(rf"\b{name}\b", text):
                return True
        return False

    def _inputs(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        rng = self.rng
        kind = rng.choice(("image", "image", "sequence", "sequence", "rows", "tokens"))
        batch = rng.choice((1, 2, 2, 3))
        grown = batch + rng.choice((0, 1, 2))
        length = rng.choice((4, 5, 6))
        longer = length + rng.choice((0, 0, 2, 4))
        channels = rng.choice((3, 4, 6, 8))
        if kind == "image":
            h, w = rng.choice(((8, 8), (8, 12), (6, 10)))
            shapes = ((batch, channels, h, w), (grown, channels, h + 2 * (longer > length), w))
        elif kind == "rows":
            shapes = ((batch + 1, channels * 2), (grown + 1, channels * 2))
        else:
            shapes = ((batch, length, channels), (grown, longer, channels))
        if kind == "tokens":
            ids = [torch.randint(0, 16, shape[:2]) for shape in shapes]
            return (ids[0],), (ids[1],)
        small, large = ([torch.randn(shape)] for shape in shapes)
        if rng.random() < 0.25:
            small.append(torch.randn(shapes[0]))
            large.append(torch.randn(shapes[1]))
        elif rng.random() < 0.15:
            small.append(torch.rand(shapes[0][:2]) > 0.3)
            large.append(torch.rand(shapes[1][:2]) > 0.3)
        return tuple(small), tuple(large)

    def _body(
        self, name: str, parameters: tuple[str, ...], small: Any, large: Any,
        count: int, has_blocks: bool,
    ) -> Body:
        values = tuple(
            dict(zip(parameters, tensors, strict=True)) for tensors in (small, large)
        )
        body = Body(name, parameters, values)  # type: ignore[arg-type]
        body.module.eval()
        for _ in range(count * 12):
            if len(body.forward) >= count:
                break
            if has_blocks and self.rng.random() < 0.2:
                self._add_block(body)
            else:
                self._add_statement(body)
        return body

    # One statement.

    def _add_statement(self, body: Body) -> None:
        rng = self.rng
        kind = rng.choices(
            ("unary", "binary", "shape", "layer", "idiom", "int", "mask"),
            (3, 4, 8, 7, 3, 1.5, 0.7),
        )[0]
        operand = self._pick(body, "float")
        if operand is None:
            kind = "layer" if kind in ("layer", "idiom") else "int"
        rank = str(body.values[0][operand].dim()) if operand else "i"
        init = ""
        if kind == "unary":
            text = rng.choice(templates.UNARY)
        elif kind == "binary":
            text = rng.choice(templates.BINARY)
        elif kind == "shape":
            text = self._of_rank(templates.SHAPES, rank)[1]
        elif kind == "layer":
            text = self._of_rank(templates.LAYERS, rank)[1]
            init, _, text = text.partition(" => ")
            text = text or "{s}({x})"
        elif kind == "idiom":
            _, init, text = self._of_rank(templates.IDIOMS, rank)
        elif kind == "int":
            has_integers = self._pick(body, "int") is not None
            pool = (*templates.INTEGERS, *templates.INTEGERS_OF_INTEGERS * has_integers)
            text = rng.choice(pool if operand else templates.INTEGERS_OF_INTEGERS)
        else:
            text = rng.choice(templates.MASKS)
        self._try(body, operand, init, text)

    def _of_rank(self, pool: Any, rank: str) -> Any:
        return self.rng.choice([t for t in pool if rank in t[0] or t[0] == "*"] or pool)

    def _pick(self, body: Body, kind: str) -> str | None:
        """Return a name of that kind, a late one more often."""
        kinds = {
            "float": lambda v: v.is_floating_point(),
            "int": lambda v: v.dtype in (torch.int64, torch.int32),
            "mask": lambda v: v.dtype == torch.bool,
        }
        names = [n for n, v in body.values[0].items() if kinds[kind](v)]
        if not names:
            return None
        weights = [2.0 ** min(k, 6) for k in range(len(names))]
        return self.rng.choices(names, weights)[0]

    def _try(self, body: Body, operand: str | None, init: str, text: str) -> None:
        rng = self.rng
        fills = self._fills(body, operand)
        if any(f"{{{key}}}" in text for key, value in fills.items() if value is None):
            return
        attribute = ""
        if init:
            stem = rng.choice(LAYER_NAMES)
            taken = dict(body.module.named_children()) | dict(body.module.named_parameters())
            attribute = next(
                n for k in range(99) if (n := f"{stem}{k or ''}") not in taken
            )
            fills["s"] = f"self.{attribute}"
            init = f"self.{attribute} = {init.format(**fills)}"
        target = rng.choice(NAMES) if rng.random() < 0.7 else operand or "x"
        text = text.format(**fills)
        is_idiom = re.search(r"^ *out = ", text, re.M) is not None
        if not is_idiom:
            text = f"{target} = {text}"
        self._run(body, init, attribute, text, "out" if is_idiom else target)

    def _fills(self, body: Body, operand: str | None) -> dict[str, Any]:
        rng = self.rng
        shape = tuple(body.values[0][operand].shape) if operand else (1,)
        rank = len(shape)
        axes = [rng.randrange(rank) for _ in range(2)]
        if rank > 1 and rng.random() < 0.8:
            axes = rng.sample(range(1, rank), 1) + axes[:1]
        axes = [a - rank if rng.random() < 0.4 else a for a in axes]
        return {
            "x": operand, "y": self._other(body, operand), "i": self._pick(body, "int"),
            "m": self._pick(body, "mask"), "d": axes[0], "e": axes[1], "C": shape[-1],
            "c": shape[1] if rank > 1 else 1, "n": rng.choice((1, 2, 2, 3, 4)),
            "w": rng.choice((2, 4, 4, 8)), "f": rng.choice((0.1, 0.25, 0.5, 0.7, 1.0, 1.5)),
        }

    def _other(self, body: Body, operand: str | None) -> str | None:
        """Return a float tensor, of the same shape in most cases."""
        values = body.values[0]
        if operand and self.rng.random() < 0.7:
            same = [n for n, v in values.items()
                    if v.is_floating_point() and v.shape == values[operand].shape]
            return self.rng.choice(same)
        return self._pick(body, "float")

    def _run(self, body: Body, init: str, attribute: str, text: str, target: str) -> None:
        """Run one statement on both sizes and keep it if its result can be used."""
        results = []
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                if init:
                    exec(init, self.space | {"self": body.module})
                    body.module.eval()
                for values in body.values:
                    local = {n: v.clone() for n, v in values.items()}
                    local |= self.space | {"self": body.module}
                    exec(text, local)
                    results.append(local[target])
            except (RuntimeError, ValueError, TypeError, IndexError, AssertionError,
                    NotImplementedError, AttributeError, KeyError):
                results = []
        pair_kept = len(results) == 2 and all(map(_is_kept, results))
        if not pair_kept or results[0].dim() != results[1].dim():
            if attribute and hasattr(body.module, attribute):
                delattr(body.module, attribute)
            return
        body.init += [init] * bool(init)
        body.forward.append(text)
        for values, result in zip(body.values, results, strict=True):
            values.pop(target, None)
            values[target] = result

    # Blocks.

    def _add_block(self, body: Body) -> None:
        """Add a class of its own, called once, in a list, or twice with one instance."""
        rng = self.rng
        operand = self._pick(body, "float")
        if operand is None or len(self.classes) > 3:
            return
        name = rng.choice(("Block", "Layer", "Encoder", "Mixer", "Cell", "Unit", "Stage"))
        name += str(len(self.classes)) if self.classes else ""
        tensors = [(values[operand],) for values in body.values]
        block = self._body(name, ("x",), *tensors, rng.randint(1, 5), False)
        floats = [n for n, v in block.values[0].items() if v.is_floating_point()]
        if not block.forward or not floats:
            return
        block.result = floats[-1]
        same = all(v[floats[-1]].shape == v["x"].shape for v in block.values)
        same = same and [v[operand].shape for v in body.values] == [
            v[floats[-1]].shape for v in block.values]
        text = block.source()
        exec(text, self.space)
        count = len(body.forward)
        form = rng.randrange(4) if same else 3
        layer = f"nn.ModuleList([{name}() for _ in range({rng.choice((2, 3, 4))})])"
        if form == 0:
            loop = "out = {x}\nfor layer in {s}:\n    out = layer(out)"
        elif form == 1:
            loop = "out = {x}\nfor layer in {s}:\n    out = out + {f} * layer(out)"
        elif form == 2:
            layer, loop = f"{name}()", "{s}({s}({x}))"
        else:
            layer, loop = f"{name}()", "{s}({x})"
            if same and rng.random() < 0.5:
                layer = f"nn.Sequential({name}(), {name}())"
        self._try(body, operand, layer, loop)
        if len(body.forward) > count:
            self.classes.append(text)


def build_program(seed: int) -> tuple[str, Case]:
    """Return the source and the case of the program of ``seed``."""
    writer = Writer(seed)
    source, small, large = writer.program()
    return source, case_of(source, small, large)


def case_of(source: str, small: tuple[Any, ...], large: tuple[Any, ...]) -> Case:
    """Return the case of a source of ``Net``, which TorchScript can be asked for."""
    space: dict[str, Any] = {"torch": torch, "nn": nn, "F": F, "__name__": "program"}
    torch.manual_seed(0)
    exec(source, space)
    net = space["Net"]().eval()
    grown = any(a.shape != b.shape for a, b in zip(small, large, strict=True))
    return Case(net, small, large if grown else None)
