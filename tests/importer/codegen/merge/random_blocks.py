"""Random networks of blocks that differ in some statements, as ONNX text.

Each block applies some of the steps of a network to one of its two inputs, then a
linear layer, and reads intermediate values again at its end. The merged classes must
compute the same, whatever statements the blocks share.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from tests.importer.codegen.merge.test_families import Layers, gemm, linear
from tests.importer.looped import normal
from tests.modules import Array

#: Extents that four features are split into.
SPLITS = (1, 2, 4)
CONSTANTS = [
    *(
        f"{name} = Constant <value = int64[1] {{{number}}}> ()"
        for name, number in {"zero": 0, "one": 1, "two": 2, "four": 4}.items()
    ),
    *(
        f"split{n} = Constant <value = int64[3] {{-1, {n}, {4 // n}}}> ()"
        for n in SPLITS
    ),
    "flat = Constant <value = int64[2] {-1, 4}> ()",
    "half = Constant <value = float {0.5}> ()",
    "third = Constant <value = float {0.375}> ()",
]
#: Nodes of a step from ``{x}`` to ``{y}``; ``{p}`` is the path of the block's arrays.
NODES = {
    "neg": ["{y} = Neg ({x})"],
    "softsign": ["{y} = Softsign ({x})"],
    "mask": ["{y} = Add ({x}, {p}__mask)"],
    "scale": ["{y} = Mul ({x}, {number})"],
    "gate": ["{y} = Mul ({x}, {other})"],
    "roll": [
        "{y}a = Slice ({x}, two, four, one)",
        "{y}b = Slice ({x}, zero, two, one)",
        "{y} = Concat <axis = 1> ({y}a, {y}b)",
    ],
    "windows": [
        "{y}a = Reshape ({x}, split{n})",
        "{y}b = Softmax <axis = -1> ({y}a)",
        "{y} = Reshape ({y}b, flat)",
    ],
    "biased windows": [
        "{y}a = Reshape ({x}, split{n})",
        "{y}b = Add ({y}a, {p}__bias{n})",
        "{y} = Reshape ({y}b, flat)",
    ],
    "turn": [
        "{y}a = Reshape ({x}, split2)",
        "{y}b = Transpose <perm = [0, 2, 1]> ({y}a)",
        "{y} = Reshape ({y}b, flat)",
    ],
}
#: Steps with a linear layer, without and with an operator after it.
LAYERS = ("layer", "negated layer")


@dataclass
class Network:
    """The text and the arrays of a network under construction."""

    lines: list[str]
    layers: Layers = field(default_factory=Layers)
    arrays: dict[str, Array] = field(default_factory=dict)

    def node(self, block: int, text: str) -> None:
        """Add a node in the scope of a block."""
        self.lines.append(f'["/blocks.{block}/node_{len(self.lines)}"] {text}')

    def layer(self, block: int, name: str, x: str, y: str) -> None:
        """Add a linear layer of a block."""
        path = f"blocks.{block}.{name}"
        self.layers |= {path: (4, 4)}
        self.lines.append(gemm(y, path, x).rstrip())

    def step(
        self, block: int, name: str, x: str, y: str, chosen: dict[str, str]
    ) -> None:
        """Add a step from ``x`` to ``y``."""
        if name in LAYERS:
            self.layer(block, "step", x, y if name == "layer" else f"{y}a")
            if name != "layer":
                self.node(block, f"{y} = Neg ({y}a)")
            return
        path = f"blocks.{block}.{name.split()[-1]}"
        if name == "mask":
            self.arrays[f"{path}.mask"] = normal(4, seed=block)
        if name == "biased windows":
            n = int(chosen["n"])
            self.arrays[f"{path}.bias{n}"] = normal(n, 4 // n, seed=block)
        for text in NODES[name]:
            p = path.replace(".", "__")
            self.node(block, text.format(x=x, y=y, p=p, **chosen))


def network(seed: int) -> tuple[str, dict[str, Array]]:
    """Return the text and the weights of a network with inputs ``x`` and ``w``."""
    random = Random(seed)
    net = Network([*CONSTANTS, "v0 = Tanh (x)"])
    plan = random.sample([*NODES, *LAYERS[:1]], random.choice((1, 2, 3)))
    plan = ["negated layer" if p == "layer" and seed % 2 else p for p in plan]
    count = random.choice((2, 3, 3, 4))
    for block in range(count):
        add_block(net, block, plan, random.choice)
    text = "\n".join([*net.lines, "z = Tanh (x)", f"y = Sub (v{count}, z)"])
    inputs = "float[n, 4] x, float[n, 4] w"
    graph = f"agraph ({inputs}) => (float[n, 4] u) {{\n{text}\nu = Add (y, w)\n}}"
    return graph, linear(net.layers) | net.arrays


def add_block(
    net: Network, block: int, plan: list[str], choose: Callable[..., str]
) -> None:
    """Add a block with some of the steps of ``plan``."""
    own = f"v{block}"
    x = choose((own, own, own, "w"))
    for number, name in enumerate(plan):
        if choose((True, False)):
            y = f"b{block}_{number}"
            chosen = {
                "number": choose(("half", "third")),
                "other": choose((own, "w", x)),
                "n": str(choose(SPLITS)),
            }
            net.step(block, name, x, y, chosen)
            x = y
    net.layer(block, "last", x, f"g{block}")
    net.node(block, f"r{block} = {choose(('Relu', 'Relu', 'Tanh'))} (g{block})")
    end = choose(
        (
            *(f"Add (r{block}, {own})", f"Add (r{block}, {x})", f"Add (r{block}, w)"),
            *(f"Mul (r{block}, {x})", f"Softsign (r{block})"),
        )
    )
    net.node(block, f"v{block + 1} = {end}")
