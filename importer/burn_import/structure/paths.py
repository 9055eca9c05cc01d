"""Where a node belongs: the path of its layer, or the scope it runs in."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence

from burn_import.compiler.names import identifier, snake
from burn_import.structure.parts import Path, with_bodies
from burn_ir.graph import Graph, Node
from burn_ir.types import Type

_DOTTED = re.compile(r"^[A-Za-z_]\w*(\.\w+)+$")


def layer_paths(graph: Graph) -> dict[int, Path]:
    """The attribute path from the root of every node that is a layer, by identity.

    Nodes with the same weights get the same path: they are one layer, called twice.
    """
    paths: dict[int, Path] = {}
    owners: dict[Path, tuple[str, ...]] = {}
    crowd = Counter(node.scope for node in graph.nodes)
    for node, types in _typed(graph):
        layer = node.op.layer(*types)
        if layer is None:
            continue
        weights = tuple(node.inputs[p] or "" for p in layer.weights.values())
        if any(weight not in graph.constants for weight in weights):
            continue
        path = _path_of(
            node, graph, dict(zip(layer.weights, weights, strict=True)), crowd
        )
        paths[id(node)] = _claim(path, weights, owners)
    return paths


def _typed(graph: Graph) -> list[tuple[Node, list[Type | None]]]:
    found = []
    for node in graph.nodes:
        found.append((node, [graph.type(name) for name in node.inputs]))
        for body in node.op.bodies().values():
            found += _typed(body)
    return found


def _claim(
    path: Path, weights: tuple[str, ...], owners: dict[Path, tuple[str, ...]]
) -> Path:
    """``path``, numbered if a layer with other weights or a container has it."""
    number, unique = 1, path
    while owners.get(unique, weights) != weights or _clashes(unique, owners):
        number += 1
        unique = (*path[:-1], f"{path[-1]}_{number}")
    owners[unique] = weights
    return unique


def _clashes(path: Path, owners: Mapping[Path, object]) -> bool:
    if path in owners:
        return False
    shorter = any(path[:n] in owners for n in range(1, len(path)))
    return shorter or any(other[: len(path)] == path for other in owners)


def _path_of(
    node: Node, graph: Graph, weights: Mapping[str, str], crowd: Mapping[Path, int]
) -> Path:
    """The path that the names of the weights tell, else the scope, else the operator.

    ``weights`` are constants by parameter; ``crowd`` counts the nodes of each scope.
    """
    origins = {name: original(graph, weight) for name, weight in weights.items()}
    for name, origin in origins.items():
        if _DOTTED.match(origin):
            whole = clean(origin.split("."))
            return whole[:-1] if whole[-1] == name else whole
    if node.scope:
        alone = crowd[node.scope] == 1
        return clean(node.scope) + (() if alone else (snake(node.op.onnx, "layer"),))
    stem = os.path.commonprefix(list(origins.values()))
    stem = re.sub(r"[^0-9A-Za-z]+$", "", stem) if len(weights) > 1 else ""
    if len(stem) < 2 or not stem[0].isalpha():
        return (snake(node.op.onnx, "layer"),)
    return (snake(stem, "layer"),)


def original(graph: Graph, constant: str) -> str:
    """The name in the file of the array that a constant was made from."""
    while constant in graph.constants.source:
        constant = graph.constants.source[constant]
    return constant


def clean(segments: Sequence[str]) -> Path:
    """Path segments as identifiers; numbers stay numbers."""
    path: list[str] = []
    for segment in segments:
        pieces = re.split(r"[./]", segment)
        if len(pieces) > 1 and path and identifier(pieces[0], "part") == path[-1]:
            del pieces[0]  # TorchScript: /layer1/layer1.0 is layer1.0
        for piece in pieces:
            if piece:
                path.append(piece if piece.isdigit() else identifier(piece, "part"))
    while path and path[0].isdigit():
        path[0] = f"part_{path[0]}"
    return tuple(path) or ("part",)


def node_scopes(graph: Graph, layers: Mapping[int, Path]) -> dict[int, Path]:
    """The scope that each node of the main graph runs in, by identity.

    A layer runs in the scope around it. Without a word from the exporter, a node
    without weights runs where what it reads comes from.
    """
    told = any(node.scope for node in graph.nodes)
    scopes: dict[int, Path] = {}
    made: dict[str, Path] = {}
    taken = set(layers.values())
    for node in graph.nodes:
        scope = _scope_of(node, layers, made, told)
        while scope in taken:  # a layer has no room for other nodes
            scope = scope[:-1]
        while scope and scope[-1].isdigit() and id(node) not in layers and not told:
            scope = scope[:-1]
        scopes[id(node)] = scope
        for name in node.outputs:
            if name is not None:
                made[name] = scope
    return scopes


def _scope_of(
    node: Node, layers: Mapping[int, Path], made: Mapping[str, Path], told: bool
) -> Path:
    path = layers.get(id(node))
    if path is not None:
        return path[:-1]
    inner = [layers[id(n)] for n in with_bodies(node) if id(n) in layers]
    if inner:
        return common([p[:-1] for p in inner])
    if told and node.scope:
        return clean(node.scope)
    sources = [made[name] for name in node.inputs if name in made]
    return common(sources) if sources else ()


def without_wrapper(
    graph: Graph, layers: dict[int, Path], scopes: dict[int, Path]
) -> tuple[dict[int, Path], dict[int, Path]]:
    """The paths without a scope that is around everything: it is the model itself.

    Dotted names of weights are kept whole: they are the keys that a user knows.
    """
    if not layers or any(_DOTTED.match(name) for name in graph.constants):
        return layers, scopes
    depth = len(common([path[:-1] for path in layers.values()]))
    if not depth:
        return layers, scopes
    return (
        {key: path[depth:] for key, path in layers.items()},
        {key: path[depth:] for key, path in scopes.items()},
    )


def common(paths: Sequence[Path]) -> Path:
    """The longest path that all of ``paths`` start with."""
    first, last = min(paths), max(paths)
    length = 0
    while length < min(len(first), len(last)) and first[length] == last[length]:
        length += 1
    return first[:length]
