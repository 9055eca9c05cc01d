"""Which module a stored array belongs to, as its name and its readers tell."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from burn_import.provenance.exporter_names import is_leftover
from burn_import.provenance.path_segments import Path
from burn_ir.graph import Graph, Node, nested_nodes

_DOTTED = re.compile(r"^([A-Za-z_]\w*(\.\w+)+|\d{1,4}(\.\w+)*\.[A-Za-z_]\w*)$")
#: What exporters append to the scope of a module that is called again.
_AGAIN = re.compile(r"_\d+")
#: What exporters call stored numbers whose dtype they changed or that they wrote down.
_CAST = re.compile(r"_cast$|^(u?int|b?float|bool)\d*_")
#: What ``torch.export`` calls tensors that ``forward`` makes, in the module that does.
_LIFTED = re.compile(r"(c_|_)?(lifted_tensor|tensor_constant)_?\d*")


def is_dotted(name: str) -> bool:
    """Whether a name in the file is a path of attributes: a key of PyTorch's."""
    return _DOTTED.match(name) is not None


def is_key(producer: str, name: str) -> bool:
    """Whether a stored array's name is its key, in a file that ``producer`` wrote.

    What belongs to a PyTorch model itself, and to no module in it, has no dot.
    """
    if producer.startswith("pytorch") and _LIFTED.fullmatch(name.rpartition(".")[2]):
        return False
    if is_dotted(name) or not producer.startswith("pytorch"):
        return is_dotted(name)
    return name.isidentifier() and not _CAST.search(name) and not is_leftover(name)


def is_authored(graph: Graph, constant: str) -> bool:
    """Whether a stored array is, or is made from, a tensor of the author's module.

    Programs list their parameters and buffers. PyTorch's ONNX exporters keep the key of
    what they did not compute; files of others say nothing.
    """
    name, constants = original(graph, constant), graph.constants
    if constants.trained:
        return name in constants.trained
    if name in constants.literals or not graph.producer.startswith("pytorch"):
        return False
    return is_key(graph.producer, name)


def is_list(graph: Graph) -> bool:
    """Whether the author's model is an ``nn.Sequential``: all keys are numbered."""
    names = {n for node in graph.nodes for n in node.inputs if n is not None}
    stored = {original(graph, n) for n in names if n in graph.constants}
    keys = [name for name in stored if is_dotted(name)]
    return bool(keys) and all(key[0].isdigit() for key in keys)


def original(graph: Graph, constant: str) -> str:
    """The name in the file of the array that a constant was made from.

    The shape that one was filled to is not what it was made from.
    """
    constants = graph.constants
    while constant in constants.source:
        source = constants.source[constant]
        if constants[source].dtype != constants[constant].dtype:
            break
        constant = source
    return constant


def homes_of_arrays(graph: Graph) -> set[Path]:
    """The modules that stored arrays with dotted names are attributes of.

    An array that the file lists is one itself: what has modules under numbers and
    arrays under other names is no list.
    """
    inner = (one for node in graph.nodes for one in nested_nodes(node))
    read = {name for node in inner for name in node.inputs if name is not None}
    names = {original(graph, name) for name in read if name in graph.constants}
    keys = {tuple(name.split(".")) for name in names if is_dotted(name)}
    listed = {key for key in keys if ".".join(key) in graph.constants.trained}
    return {key[:-1] for key in keys} | listed


class Homes:
    """Where layers with the same stored weights are.

    PyTorch lists a tied weight under each of its names, and the file has one of them.
    The other layers are where the exporter says that their nodes run.
    """

    def __init__(
        self,
        graph: Graph,
        layers: Iterable[tuple[Node, Mapping[str, str]]],
        scope: Callable[[Node], Path],
    ) -> None:
        self.graph = graph
        self.scope = scope
        self.weights: dict[int, Mapping[str, str]] = {}
        self.readers: dict[str, list[Node]] = {}
        self.runs: dict[Path, Node] = {}
        for node, weights in layers:
            self.weights[id(node)] = weights
            self.runs.setdefault(scope(node), node)
            for constant in weights.values():
                name = original(graph, constant)
                self.readers.setdefault(name, []).append(node)

    def own(self, node: Node, named: Path) -> Path | None:
        """The path of a layer that only shares the weights of the one at ``named``."""
        scope = self.scope(node)
        owner = self.runs.get(named) or self._first(node)
        if owner is node or not scope or scope == named[: len(scope)]:
            return None
        if self._alike(owner, node) and not self._apart(owner, scope, named):
            return None
        return scope

    def borrows(self, node: Node, named: Path) -> bool:
        """Whether ``node`` is no layer: it does something else around ``named``."""
        runs, scope = self.runs.get(named), self.scope(node)
        owner = runs or self._first(node)
        if owner is node or self._alike(owner, node) or not (scope or runs):
            return False
        return len(scope) < len(named) and scope == named[: len(scope)]

    def _first(self, node: Node) -> Node:
        """The first layer that has one of the weights of ``node``."""
        names = [original(self.graph, n) for n in self.weights[id(node)].values()]
        return next(self.readers[name][0] for name in names if is_dotted(name))

    def _alike(self, a: Node, b: Node) -> bool:
        same = type(a.op) is type(b.op)
        return same and self.weights[id(a)] == self.weights[id(b)]

    def _apart(self, owner: Node, scope: Path, named: Path) -> bool:
        """Whether ``scope`` is no second call of the module at ``named``."""
        return self.scope(owner) == named and not is_again(scope, named)


def are_same_weights(graph: Graph, a: Sequence[str], b: Sequence[str]) -> bool:
    """Whether two layers at one path have the same weights, so that they are one.

    ``torch.onnx.export(dynamo=True)`` stores the transpose of a matrix once for each
    call of its layer. Equal arrays of one repeated element tell nothing.
    """
    if a == b:
        return True
    if len(a) != len(b) or not graph.producer.startswith("pytorch"):
        return False
    return all(x == y or _are_copies(graph, x, y) for x, y in zip(a, b, strict=True))


def _are_copies(graph: Graph, a: str, b: str) -> bool:
    """Whether two stored arrays have the same elements, which differ."""
    if a not in graph.constants or b not in graph.constants:
        return False
    x, y = graph.constants[a], graph.constants[b]
    if x.dtype != y.dtype or not np.array_equal(x, y):
        return False
    return bool((x != x.reshape(-1)[:1]).any())


def is_again(scope: Path, path: Path) -> bool:
    """Whether ``scope`` is what exporters call the module at ``path`` once more."""
    return len(scope) == len(path) and all(
        a == b or (a.startswith(b) and _AGAIN.fullmatch(a[len(b) :]))
        for a, b in zip(scope, path, strict=True)
    )


def called_again(graph: Graph) -> dict[Path, Path]:
    """The modules that scopes are another call of, told by the weights they read."""
    found: dict[Path, Path] = {}
    for node in graph.nodes:
        for name in node.inputs:
            if name is None or name not in graph.constants or not node.scope:
                continue
            origin = original(graph, name)
            path = tuple(origin.split("."))[:-1]
            if is_dotted(origin) and path != node.scope and is_again(node.scope, path):
                found[node.scope] = path
    return found
