"""Random models with module trees, with the node names of PyTorch's exporters."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import TensorProto, helper

from tests.importer.structure.scoped_net import ScopedNet

#: Attribute names; many have a meaning in Python or in generated source.
WORDS = (
    *(
        "conv",
        "fc",
        "norm",
        "block",
        "layers",
        "attn",
        "self",
        "class",
        "lambda",
        "type",
    ),
    *("input", "output", "x", "ops", "nn", "math", "burn", "list", "range", "Tensor"),
    *("Self", "path", "load", "part", "run", "scale", "weight", "bias", "to", "m", "i"),
)
#: Operators that keep values, and so rounding errors, small.
ACTIVATIONS = ("Relu", "Tanh", "Sigmoid", "Softplus", "Elu", "Abs", "Neg")
#: Widths of values; most are equal, so that modules repeat.
WIDTHS = (4, 4, 4, 6)
#: Maximum number of nodes of a model.
MOST_NODES = 70


@dataclass
class TreeModel:
    """A builder of one model, whose random choices depend only on ``seed``."""

    seed: int
    rng: random.Random = field(init=False)
    net: ScopedNet = field(init=False)
    #: The used paths.
    built: set[str] = field(default_factory=set)
    #: Values of the main graph that modules computed, with their widths.
    values: list[tuple[str, int]] = field(default_factory=list)
    #: The number of bodies around a module.
    inside: int = 0

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        producer = self.rng.choice(("pytorch", "pytorch", "someone"))
        self.net = ScopedNet(producer, seed=self.seed)

    def model(self) -> onnx.ModelProto:
        """Return the model from rows to rows, possibly with inner values as outputs."""
        batch = self.rng.choice((2, "n", "Net"))
        x, width = (
            self.net.input(self.rng.choice(("x", "input.1", "self")), batch, 4),
            4,
        )
        outputs = []
        for _ in range(self.rng.randint(1, 6)):
            kinds = [self.module] * 8 + [self.branches, self.rounds]
            x, width = self.rng.choice(kinds)(self.child(""), x, width, 0)
            if self.rng.random() < 0.2:
                outputs.append(x)
            if self.rng.random() < 0.3:
                x = self.leak("", x, width)
        outputs.append(self.net.run("Tanh", "", x))
        return self.net.model(*dict.fromkeys(outputs))

    def leak(self, scope: str, x: str, width: int) -> str:
        """Add a value that was computed inside of an earlier module."""
        values = [name for name, wide in self.values if wide == width]
        return self.net.run("Add", scope, x, self.rng.choice(values)) if values else x

    def child(self, scope: str) -> str:
        """Return an unused path for a module."""
        while True:
            name = self.rng.choice(WORDS)
            path = f"{scope}.{name}" if scope else name
            taken = any(f"{one}.".startswith(f"{path}.") for one in self.built)
            if not taken and path not in self.built:
                self.built.add(path)
                return path

    def module(self, scope: str, x: str, width: int, depth: int) -> tuple[str, int]:
        """Run a module of some kind at ``scope``."""
        kinds: list[Callable[[str, str, int, int], tuple[str, int]]] = [
            self.layer,
            self.layer,
            self.norm,
            self.scaled,
        ]
        if depth < 3 and self.net.count < MOST_NODES:
            kinds += [self.sequence, self.sequence, self.blocks, self.composite]
            kinds += [self.gated, self.without_inputs, self.residual, self.mixed]
            kinds += [self.tied, self.again]
        x, width = self.rng.choice(kinds)(scope, x, width, depth)
        if not self.inside:
            self.values.append((x, width))
        if self.rng.random() < 0.1:
            x = self.leak(scope, x, width)
        return x, width

    def layer(self, scope: str, x: str, width: int, depth: int) -> tuple[str, int]:
        """Run an ``nn.Linear``, sometimes without the names of its weights."""
        wide = self.rng.choice(WIDTHS)
        if self.rng.random() < 0.3:
            number = self.net.count
            weight = self.net.weight(f"onnx::Gemm_{100 + number}", wide, width)
            bias = self.net.weight(f"onnx::Gemm_{500 + number}", wide)
            return self.net.run("Gemm", scope, x, weight, bias, transB=1), wide
        return self.net.linear(scope, x, width, wide), wide

    def norm(self, scope: str, x: str, width: int, depth: int) -> tuple[str, int]:
        """Run an ``nn.LayerNorm``."""
        weights = (
            self.net.weight(f"{scope}.{leaf}", width) for leaf in ("weight", "bias")
        )
        return self.net.run("LayerNormalization", scope, x, *weights), width

    def scaled(self, scope: str, x: str, width: int, depth: int) -> tuple[str, int]:
        """Multiply by an author's own parameter."""
        leaf = self.rng.choice(("scale", "gamma", "weight", "x"))
        return (
            self.net.run("Mul", scope, x, self.net.weight(f"{scope}.{leaf}", width)),
            width,
        )

    def act(self, scope: str, x: str) -> str:
        """Run an activation in a scope of its own."""
        return self.net.run(self.rng.choice(ACTIVATIONS), scope, x)

    def numbers(self, count: int) -> list[int]:
        """Return list indices: in order, with gaps, or out of order."""
        places = list(range(count))
        if self.rng.random() < 0.4:
            places = sorted(self.rng.sample(range(count + 4), count))
        if self.rng.random() < 0.3:
            self.rng.shuffle(places)
        return places

    def sequence(self, scope: str, x: str, width: int, depth: int) -> tuple[str, int]:
        """Run an ``nn.Sequential`` of layers, activations and modules."""
        for index in self.numbers(self.rng.randint(1, 5)):
            inner = f"{scope}.{index}"
            kind = self.rng.random()
            if kind < 0.4:
                x = self.act(inner, x)
            elif kind < 0.8:
                x, width = self.layer(inner, x, width, depth)
            else:
                x, width = self.module(inner, x, width, depth + 1)
        return x, width

    def blocks(self, scope: str, x: str, width: int, depth: int) -> tuple[str, int]:
        """Run equal blocks of an ``nn.ModuleList``; some are called once more."""
        state = self.rng.getstate()
        for index in self.numbers(self.rng.randint(2, 4)):
            if self.rng.random() < 0.8:
                self.rng.setstate(state)  # the same block again
            inner = f"{scope}.{index}"
            y, wide = self.module(f"{inner}.body", x, width, depth + 2)
            x = self.net.run("Add", inner, x, y) if wide == width else y
            width = wide
            self.rng.seed(self.seed * 1000 + self.net.count)
        return x, width

    def composite(self, scope: str, x: str, width: int, depth: int) -> tuple[str, int]:
        """Run named modules, and operations of the module itself."""
        for _ in range(self.rng.randint(1, 3)):
            x, width = self.module(self.child(scope), x, width, depth + 1)
            if self.rng.random() < 0.5:
                x = self.act(scope, x)
        return x, width

    def residual(self, scope: str, x: str, width: int, depth: int) -> tuple[str, int]:
        """Run one module twice, and read its first result again."""
        inner = self.child(scope)
        y = self.net.linear(inner, x, width, width)
        z = self.net.linear(inner, self.act(scope, y), width, width)
        return self.net.run("Sub", scope, self.net.run("Max", scope, y, z), x), width

    def gated(self, scope: str, x: str, width: int, depth: int) -> tuple[str, int]:
        """Run two modules on one value; their nodes may be interleaved."""
        one, two = self.child(scope), self.child(scope)
        a = self.net.linear(f"{one}.fc", x, width, width)
        b = self.net.linear(
            f"{two}.fc", a if self.rng.random() < 0.5 else x, width, width
        )
        a = self.net.run("Min", one, self.act(one, a), b)
        b = self.net.run("Add", two, self.act(two, b), a)
        return self.net.run("Max", scope, a, b), width

    def without_inputs(
        self, scope: str, x: str, width: int, depth: int
    ) -> tuple[str, int]:
        """Add a value that a module computes from its own parameters."""
        inner = self.child(scope)
        y = self.net.weight(f"{inner}.table", 1, 4)
        for index in range(self.rng.randint(1, 3)):
            y = self.act(inner, self.net.linear(f"{inner}.{index}", y, 4, 4))
        y = self.net.linear(f"{inner}.last", y, 4, width)
        return self.net.run("Add", scope, x, y), width

    def mixed(self, scope: str, x: str, width: int, depth: int) -> tuple[str, int]:
        """Run a list that also has named attributes."""
        for index in self.numbers(self.rng.randint(1, 3)):
            x, width = self.module(f"{scope}.{index}", x, width, depth + 1)
            if self.rng.random() < 0.5:
                x, width = self.module(self.child(scope), x, width, depth + 1)
            if self.rng.random() < 0.3:
                x = self.net.run(
                    "Mul", scope, x, self.net.weight(f"{scope}.g{index}", width)
                )
        return x, width

    def tied(self, scope: str, x: str, width: int, depth: int) -> tuple[str, int]:
        """Run two layers with the same weight, one of them transposed."""
        one, two = self.child(scope), self.child(scope)
        weight = self.net.weight(f"{one}.weight", width, width)
        x = self.net.run("Gemm", one, x, weight, transB=1)
        x = self.act(scope, x)
        if self.rng.random() < 0.5:
            return self.net.run("MatMul", two, x, weight), width
        bias = self.net.weight(f"{two}.bias", width)
        return self.net.run("Gemm", two, x, weight, bias, transB=1), width

    def again(self, scope: str, x: str, width: int, depth: int) -> tuple[str, int]:
        """Run a layer in a list again, in the scope that exporters give it."""
        for index in self.numbers(2):
            key = f"{scope}.{index}.fc"
            x = self.act(f"{scope}.{index}", self.net.linear(key, x, width, width))
            weights = self.net.weight(f"{key}.weight"), self.net.weight(f"{key}.bias")
            x = self.net.run("Gemm", f"{scope}.{index}.fc_1", x, *weights, transB=1)
        return x, width

    def branches(self, scope: str, x: str, width: int, depth: int) -> tuple[str, int]:
        """Run an ``If`` with layers of different sizes in its branches."""
        axes = self.net.stored(f"axes_{scope}", np.array([0, 1]))
        total = self.net.run("ReduceSum", scope, x, axes, keepdims=0)
        limit = self.net.stored(f"limit_{scope}", np.float32(self.rng.gauss(0, 1)))
        condition = self.net.run("Greater", scope, total, limit)
        sides = [self.net.body(lambda: [self.inner(scope, x, width)]) for _ in "ab"]
        bodies = {"then_branch": sides[0], "else_branch": sides[1]}
        return self.net.run("If", scope, condition, **bodies), width

    def rounds(self, scope: str, x: str, width: int, depth: int) -> tuple[str, int]:
        """Run a ``Loop`` with layers in its body."""

        def body() -> list[str]:
            going = self.net.run("Identity", scope, f"{scope}_going")
            return [going, self.inner(scope, f"{scope}_state", width)]

        kinds = {"round": TensorProto.INT64, "going": TensorProto.BOOL}
        given = [
            helper.make_tensor_value_info(f"{scope}_{name}", kind, [])
            for name, kind in kinds.items()
        ]
        shape = [None, width]
        given.append(
            helper.make_tensor_value_info(f"{scope}_state", TensorProto.FLOAT, shape)
        )
        trips = self.net.stored(f"trips_{scope}", np.array(self.rng.randint(0, 3)))
        going = self.net.stored(f"going_{scope}", np.array(True))
        return (
            self.net.run(
                "Loop", scope, trips, going, x, body=self.net.body(body, *given)
            ),
            width,
        )

    def inner(self, scope: str, x: str, width: int) -> str:
        """Run modules in a body that keeps the number of columns."""
        self.inside += 1
        wide = width
        for _ in range(self.rng.randint(1, 4)):
            x, wide = self.module(self.child(scope), x, wide, 1)
        x = self.net.linear(self.child(scope), x, wide, width)
        self.inside -= 1
        return x
