"""Random recurrences, printed by an exporter once per round, as ONNX text.

Each round computes a state from the one before it and a slice of the input. Some
networks are irregular: a round has another operator, reads an older state, another
slice, another part of a split or a number that does not follow from its own; the
collected values are in another order. The loops must compute the same as the rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

#: The values of a round, and how each is computed from two of its operands.
OPERATORS = ("Add", "Mul", "Sub", "Max")
FUNCTIONS = ("Tanh", "Sigmoid", "Neg", "Softsign")
IRREGULARITIES = (
    *("",) * 5,
    "operator",
    "older state",
    "slice",
    "swapped",
    "number",
    "tap",
    "first slice",
    "weight",
    "part",
)
ORDERS = (*("",) * 5, "reversed", "swapped", "without last", "first twice")
#: Values of a batch, steps in the input, features.
WIDTH = 4


@dataclass
class Rounds:
    """The lines of a network under construction, and the choices for all rounds."""

    random: Random
    count: int
    irregularity: str
    lines: list[str] = field(default_factory=list)
    collected: list[str] = field(default_factory=list)
    #: Nodes to write before, in and after the rounds.
    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        choice = self.random.choice
        self.odd = self.random.randrange(self.count)
        self.stride, self.offset = choice((1, 1, 1, 2, -1)), choice((0, 0, 1))
        self.is_hoisted = choice((True, False))
        self.plan = [
            (choice((*OPERATORS, *FUNCTIONS)), choice((0, 1, 2)))
            for _ in range(choice((1, 2, 3)))
        ]
        self.is_numbered, self.is_linear = choice((True, False)), choice((True, False))
        self.has_cell = choice((True, False))
        self.is_split = self.irregularity == "part" or choice((True, False, False))
        if self.irregularity == "part":  # others may be compared with the first round
            self.odd = choice((0, self.odd))

    def has(self, irregularity: str, number: int) -> bool:
        """Return whether this round has the irregularity."""
        return self.irregularity == irregularity and number == self.odd

    def slice(self, number: int) -> str:
        """Add the slice that a round reads."""
        at = self.stride * number + self.offset
        if self.stride < 0:
            at += self.count - 1
        if self.has("slice", number):
            at = self.random.randrange(self.count)
        if self.has("first slice", number):
            at = 0
        lines = self.before if self.is_hoisted else self.lines
        lines.append(f"i{number} = Constant <value = int64 {{{at}}}> ()")
        lines.append(f"x{number} = Gather <axis = 1> (x, i{number})")
        return f"x{number}"

    def round(self, number: int, states: list[str]) -> str:
        """Add a round; return its state."""
        older = self.has("older state", number) and len(states) > 1
        value, given = states[-2 if older else -1], self.slice(number)
        if self.is_linear:
            name = "u" if self.has("weight", number) else "w"
            value = self.node(f"l{number}", f"MatMul ({value}, {name})")
        for at, (operator, other) in enumerate(self.plan):
            operands = [value, (given, states[-1], "b")[other]]
            if self.has("operator", number):
                operator = self.random.choice((*OPERATORS, *FUNCTIONS))
            if self.has("swapped", number):
                operands.reverse()
            if operator in FUNCTIONS:
                del operands[1:]
            text = f"{operator} ({', '.join(operands)})"
            value = self.node(f"v{number}_{at}", text)
        if self.is_split:
            value = self.split(number, value)
        if self.is_numbered:
            time = 3 * number * number if self.has("number", number) else 3 * number
            self.lines.append(f"t{number} = Constant <value = int64 {{{time}}}> ()")
            self.lines.append(f"f{number} = Add (steps, t{number})")
            self.lines.append(f"c{number} = Cast <to = 1> (f{number})")
            value = self.node(f"d{number}", f"Add ({value}, c{number})")
        self.node(f"a{number}", f"Add ({value}, {given})")
        return self.node(f"s{number}", f"Tanh (a{number})")

    def split(self, number: int, value: str) -> str:
        """Add the difference of the halves of a value; return it beside a half."""
        halves = [f"p{number}", f"q{number}"]
        self.node(", ".join(halves), f"Split <axis = 1, num_outputs = 2> ({value})")
        if self.has("part", number):
            halves.reverse()
        change = self.node(f"m{number}", f"Sub ({', '.join(halves)})")
        return self.node(f"j{number}", f"Concat <axis = 1> ({change}, {halves[1]})")

    def node(self, name: str, text: str) -> str:
        """Add a node; return its result."""
        self.lines.append(f"{name} = {text}")
        return name

    def collect(self, number: int, state: str) -> None:
        """Add the result of a round to the collected values."""
        lines = self.after if self.is_hoisted else self.lines
        value = state
        if self.has_cell:
            value = self.node(f"o{number}", f"Softsign ({state})")
        lines.append(f"e{number} = Unsqueeze ({value}, one)")
        self.collected.append(f"e{number}")


def network(seed: int) -> tuple[str, int]:
    """Return the text of a network with the inputs ``x`` and ``h``, and its steps."""
    random = Random(seed)
    count = random.choice((4, 5, 7))
    rounds = Rounds(random, count, random.choice(IRREGULARITIES))
    states = ["b" if random.choice((True, False, False)) else "h"]
    for number in range(count):
        states.append(rounds.round(number, states))
        rounds.collect(number, states[-1])
    collected = _ordered(rounds.collected, random.choice(ORDERS))
    last = states[-1]
    if rounds.irregularity == "tap":
        last = rounds.node("tapped", f"Add ({last}, {random.choice(states[1:])})")
    lines = [
        "one = Constant <value = int64[1] {1}> ()",
        "steps = Constant <value = int64 {0}> ()",
        *rounds.before,
        *rounds.lines,
        *rounds.after,
        f"ys = Concat <axis = 1> ({', '.join(collected)})",
        f"y = Neg ({last})",
    ]
    length = abs(rounds.stride) * count + 1
    inputs = f"float[n, {length}, {WIDTH}] x, float[n, {WIDTH}] h"
    results = f"float[n, {len(collected)}, {WIDTH}] ys, float[n, {WIDTH}] y"
    text = "\n".join(lines)
    return f"agraph ({inputs}) => ({results}) {{\n{text}\n}}", length


def _ordered(values: Sequence[str], order: str) -> list[str]:
    """Return the collected values in another order, or only some of them."""
    if order == "reversed":
        return list(values[::-1])
    if order == "swapped":
        return [values[1], values[0], *values[2:]]
    if order == "without last":
        return list(values[:-1])
    if order == "first twice":
        return [values[0], *values]
    return list(values)
