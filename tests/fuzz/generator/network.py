"""Networks of repeated blocks, written as exporters of real models write them."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np

from tests.fuzz.generator.blocks import (
    SEQUENCE_BLOCKS,
    Block,
    Shape,
    image_stage,
    linear,
    norm,
)
from tests.fuzz.generator.bodies import branched, looped
from tests.fuzz.generator.builder import Builder
from tests.fuzz.generator.layers import STYLES, Layers
from tests.fuzz.generator.trial import Rejected

#: No more blocks are added to a graph of so many nodes.
MOST_NODES = 90
VOCABULARY = 11


def grow_network(builder: Builder, rng: random.Random) -> None:
    """Add inputs, groups of blocks and a head."""
    style = rng.choice((*STYLES, "scopes"))
    root = Layers(builder, rng, style, "", "")
    if rng.random() < 0.3:
        x, shape = _image(builder, rng)
        blocks: tuple[Block, ...] = (image_stage,)
    else:
        x, shape = _sequence(root)
        blocks = (*SEQUENCE_BLOCKS, looped, branched)
    for group in range(rng.randint(1, 3)):
        block = rng.choice(blocks)
        name = rng.choice(("layers", "blocks", "h", "encoder.layer", "stage"))
        builder.shared.next_step()
        x = _group(root, f"{name}{group or ''}", block, x, shape)
    if len(builder.nodes) < 2:
        raise Rejected("no block ran")
    if blocks != (image_stage,):
        _head(root, x, shape)


def _image(builder: Builder, rng: random.Random) -> tuple[str, Shape]:
    width = rng.choice((2, 4, 6))
    sizes = builder.shared.symbols
    dims: list[int | str] = ["N", width, "H" if rng.random() < 0.5 else 6, "W"]
    extents = [d if isinstance(d, int) else sizes[d][0] for d in dims]
    array = builder.rng.standard_normal(extents).astype(np.float32)
    return builder.add_input(array, dims).name, Shape(width)


def _sequence(root: Layers) -> tuple[str, Shape]:
    builder, rng = root.builder, root.rng
    width = rng.choice((4, 6, 8))
    sizes = builder.shared.symbols
    batch, seq = sizes["N"][0], sizes["S"][0]
    mask = None
    if rng.random() < 0.5:
        ones = (builder.rng.random((batch, seq)) < 0.7).astype(np.int64)
        ones[:, 0] = 1
        name = builder.add_input(ones, ["N", "S"]).name
        mask = _run(root, lambda m: m.op("Cast", name, to=1))
    if rng.random() < 0.5:
        array = builder.rng.standard_normal((batch, seq, width)).astype(np.float32)
        return builder.add_input(array, ["N", "S", width]).name, Shape(width, mask)
    ids = builder.rng.integers(0, VOCABULARY, (batch, seq))
    name = builder.add_input(ids, ["N", "S"]).name
    x = _run(root, lambda m: _embedded(m.inside("embeddings"), name, width))
    return x, Shape(width, mask)


def _embedded(m: Layers, ids: str, width: int) -> str:
    table = m.weight("weight", VOCABULARY, width)
    x = m.op("Gather", table, ids)
    if m.rng.random() < 0.5 and m.builder.opset >= 10:
        rows = m.cut(m.weight("position", 16, width), 0, m.extent(ids, 1), 0)
        x = m.op("Add", x, rows)
    return norm(m.inside("norm"), x, Shape(width)) if m.rng.random() < 0.5 else x


def _run(m: Layers, block: Callable[[Layers], str]) -> str:
    """The result of a block, whose nodes are added if they run.

    Raises:
        Rejected: they do not.
    """
    snapshot = m.builder.snapshot()
    part = Layers(m.builder, m.rng, m.style, m.path, m.owner)
    try:
        result = block(part)
        m.builder.try_nodes(part.nodes, [result])
    except Rejected:
        m.builder.restore(snapshot)
        raise
    return result


def _group(root: Layers, name: str, block: Block, x: str, shape: Shape) -> str:
    """Copies of one block, numbered in order, with gaps, or in another order.

    All may have the weights of the first one; one may be another block.
    """
    rng = random.Random(root.builder.shared.step_key())
    copies = rng.choice((1, 2, 2, 3, 4))
    numbers = list(range(copies))
    order = rng.random()
    if order < 0.15:
        numbers = sorted(rng.sample(range(10), copies))
    elif order < 0.3:
        rng.shuffle(numbers)
    shared = rng.random() < 0.15
    other = rng.randrange(copies) if rng.random() < 0.2 else None
    structure = rng.randrange(2**32)
    for index, number in enumerate(numbers):
        if len(root.builder.nodes) > MOST_NODES:
            break
        stream = random.Random(structure + (index == other))
        owner = f"{name}.{numbers[0] if shared else number}"
        copy = Layers(root.builder, stream, root.style, f"/{name}.{number}", owner)
        try:
            x = _run(copy, _applied(block, x, shape))
        except Rejected:
            continue
    return x


def _applied(block: Block, x: str, shape: Shape) -> Callable[[Layers], str]:
    return lambda m: block(m, x, shape)


def _head(root: Layers, x: str, shape: Shape) -> None:
    """A projection, seldom onto the rows of the table of embeddings."""
    m = Layers(root.builder, root.rng, root.style, "/head", "head")
    table = [n for n in root.builder.constants if n.startswith("embeddings.weight")]
    tied = bool(table) and root.rng.random() < 0.5

    def tied_head(part: Layers) -> str:
        return part.op("MatMul", x, part.op("Transpose", table[0], perm=[1, 0]))

    def head(part: Layers) -> str:
        return linear(part, norm(part.inside("norm"), x, shape), shape.width, 3)

    try:
        _run(m, tied_head if tied else head)
    except Rejected:
        return
