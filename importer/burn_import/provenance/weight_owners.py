"""Owning modules of stored arrays, from their names and readers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from burn.dtypes import is_float
from burn_import.provenance.exporter_names import is_computed_by_paddle, is_leftover
from burn_import.provenance.path_segments import Path
from burn_ir.graph import Graph, Node, nested_nodes
from burn_ir.types import Array

#: Number of leading elements that are compared first.
_FEW = 64
_DOTTED = re.compile(r"^([A-Za-z_]\w*(\.\w+)+|\d{1,4}(\.\w+)*\.[A-Za-z_]\w*)$")
#: The end of PaddlePaddle's names, whose dot separates no modules: ``conv2d_5.w_0`` is
#: the weight of a layer.
_PADDLE_PARAMETER = re.compile(r"\.[wb]_\d+(_deepcopy_\d+)?$")
#: A value of PaddlePaddle, with the number of a loop's initial values.
_PADDLE_VALUE = re.compile(r"\.tmp_\d+(\.\d+)?$|^undefined_var_\d+\.\d+$")
#: The suffix of exporters for the scope of a repeated module call.
_AGAIN = re.compile(r"_\d+")
_AGAIN_AT_END = re.compile(r"_\d+$")
#: Names of exporters for converted constants and for literals.
_CAST = re.compile(r"_cast$|^(u?int|b?float|bool)\d*_")
#: What onnxruntime's quantizer of blocks, and our packing of them, append to the name
#: of a weight.
_PACKED = re.compile(r"((_DQ)?_(Q[248]|scales|zero_points|packed))+$")
#: Names of ``torch.export`` for tensors created in ``forward``, after the module path.
_LIFTED = re.compile(r"(c_|_)?(lifted_tensor|tensor_constant)_?\d*")


def is_lifted(name: str) -> bool:
    """Return whether ``torch.export`` names a tensor so that ``forward`` creates."""
    return _LIFTED.fullmatch(name.rpartition(".")[2]) is not None


def is_dotted(name: str) -> bool:
    """Return whether a name is a dotted path of attributes, as PyTorch's keys are."""
    if is_parameter_of_paddle(name) or is_computed_by_paddle(name):
        return False
    return _DOTTED.match(name) is not None and not _PADDLE_VALUE.search(name)


def is_parameter_of_paddle(name: str) -> bool:
    """Return whether PaddlePaddle names a parameter so, which its program stores."""
    return _PADDLE_PARAMETER.search(name) is not None


def is_key(producer: str, name: str) -> bool:
    """Return whether an array's name is its key, in a file by ``producer``.

    A tensor of the root module of PyTorch has a key without dots.
    """
    if producer.startswith("pytorch") and is_lifted(name):
        return False
    if is_dotted(name) or not producer.startswith("pytorch"):
        return is_dotted(name)
    name = _PACKED.sub("", name)
    return name.isidentifier() and not _CAST.search(name) and not is_leftover(name)


def is_authored(graph: Graph, constant: str) -> bool:
    """Return whether a constant is, or derives from, a tensor of the author's.

    Exported programs list their parameters and buffers. PyTorch's ONNX exporters keep
    the keys of arrays that they did not compute; files of other producers tell nothing.
    """
    name, constants = original(graph, constant), graph.constants
    if constants.trained:
        return name in constants.trained
    if name in constants.literals or not graph.producer.startswith("pytorch"):
        return False
    return is_key(graph.producer, name) and folded_floats(graph, constant) in (None, 1)


def folded_floats(graph: Graph, constant: str) -> int | None:
    """Return how many floating arrays a constant was folded from; None if it is stored.

    A stored array that a pass only transposed, reshaped or cast is the array itself.
    """
    constants = graph.constants
    recipe = constants.recipes.get(original(graph, constant))
    if recipe is None:
        return None
    operands = [name for name in recipe.inputs if name is not None]
    return sum(is_float(constants[name].dtype) for name in operands)


def has_dotted_parameter(graph: Graph) -> bool:
    """Return whether a node reads an author's tensor with a dotted name."""
    names = {name for node in graph.nodes for name in node.inputs if name is not None}
    return any(
        is_authored(graph, name) and is_dotted(original(graph, name))
        for name in names
        if name in graph.constants
    )


def is_list(graph: Graph) -> bool:
    """Return whether the model is an ``nn.Sequential``: all keys are numbered."""
    names = {n for node in graph.nodes for n in node.inputs if n is not None}
    stored = {original(graph, n) for n in names if n in graph.constants}
    keys = [name for name in stored if is_dotted(name)]
    return bool(keys) and all(key[0].isdigit() for key in keys)


def original(graph: Graph, constant: str) -> str:
    """Return the name in the file of the array that a constant derives from.

    A filled constant does not derive from its shape.
    """
    constants = graph.constants
    while constant in constants.source:
        source = constants.source[constant]
        if constants[source].dtype != constants[constant].dtype:
            break
        constant = source
    return constant


def ancestors(graph: Graph, constant: str, *, floats: bool = False) -> Iterator[str]:
    """Yield ``constant`` and the constants that it was folded from, each once.

    With ``floats`` integers end the search: a shape does not change in training.
    """
    constants = graph.constants
    seen, waiting = {constant}, [constant]
    while waiting:
        name = waiting.pop()
        if floats and not is_float(constants[name].dtype):
            continue
        yield name
        recipe = constants.recipes.get(original(graph, name))
        operands = () if recipe is None else recipe.inputs
        new = {n for n in operands if n is not None} - seen
        seen |= new
        waiting += sorted(new)


def array_owner_paths(graph: Graph) -> set[Path]:
    """Return the paths of the modules that own arrays with dotted names.

    Arrays that the file lists are included with their own paths, so that a module with
    numbered children and other arrays is not taken for a list.
    """
    inner = (node_inside for node in graph.nodes for node_inside in nested_nodes(node))
    read = {name for node in inner for name in node.inputs if name is not None}
    names = {original(graph, name) for name in read if name in graph.constants}
    keys = {tuple(name.split(".")) for name in names if is_dotted(name)}
    listed = {key for key in keys if ".".join(key) in graph.constants.trained}
    return {key[:-1] for key in keys} | listed


class SharedWeightPaths:
    """Module paths of layers with the same stored weights.

    PyTorch lists a tied weight under each of its names, and the file has one of them.
    The other layers are located by the scopes of their nodes.
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
        """Return the path of a layer that shares the weights of ``named``, or None."""
        scope = self.scope(node)
        owner = self.runs.get(named) or self._first(node)
        if owner is node or not scope or scope == named[: len(scope)]:
            return None
        sibling = moved_to_sibling(scope, named)
        if sibling is not None and len(scope) < len(named):
            return sibling
        if self._have_equal_weights(owner, node) and not self._is_other_module(
            owner, scope, named
        ):
            return None
        return scope

    def borrows(self, node: Node, named: Path) -> bool:
        """Return whether ``node`` only reads a weight of ``named`` and is no layer."""
        runs, scope = self.runs.get(named), self.scope(node)
        owner = runs or self._first(node)
        if (
            owner is node
            or self._have_equal_weights(owner, node)
            or not (scope or runs)
        ):
            return False
        return len(scope) < len(named) and scope == named[: len(scope)]

    def _first(self, node: Node) -> Node:
        """Return the first layer that reads one of the weights of ``node``."""
        names = [original(self.graph, n) for n in self.weights[id(node)].values()]
        return next(self.readers[name][0] for name in names if is_dotted(name))

    def _have_equal_weights(self, a: Node, b: Node) -> bool:
        same = type(a.op) is type(b.op)
        return same and self.weights[id(a)] == self.weights[id(b)]

    def _is_other_module(self, owner: Node, scope: Path, named: Path) -> bool:
        """Return whether ``scope`` is not a second call of the module at ``named``."""
        return self.scope(owner) == named and not is_again(scope, named)


def moved_to_sibling(scope: Path, path: Path) -> Path | None:
    """Return ``path`` in another element of a list, in which ``scope`` is, or None.

    ``layers.1.attention`` moves ``layers.0.attention.out`` to ``layers.1``: exporters
    store equal weights once, and modules do not read those of their siblings.
    """
    for at, (own, other) in enumerate(zip(scope, path, strict=False)):
        if own != other:
            is_moved = own.isdigit() and other.isdigit()
            rest = scope[at + 1 :]
            is_around = rest == path[at + 1 : at + 1 + len(rest)]
            return (
                (*scope[: at + 1], *path[at + 1 :]) if is_moved and is_around else None
            )
    return None


def are_same_weights(graph: Graph, a: Sequence[str], b: Sequence[str]) -> bool:
    """Return whether two layers at one path have equal weights.

    ``torch.onnx.export(dynamo=True)`` stores the transpose of a matrix once for each
    call of its layer. Equal arrays of one repeated element are no evidence.
    """
    if a == b:
        return True
    if len(a) != len(b) or not graph.producer.startswith("pytorch"):
        return False
    pairs = zip(a, b, strict=True)
    return all(x == y or have_equal_contents(graph, x, y) for x, y in pairs)


def have_equal_contents(graph: Graph, a: str, b: str) -> bool:
    """Return whether two arrays are equal, and not of one repeated element."""
    if a not in graph.constants or b not in graph.constants:
        return False
    x, y = graph.constants[a], graph.constants[b]
    if x.dtype != y.dtype or not np.array_equal(x, y):
        return False
    return has_unequal_elements(x)


def has_unequal_elements(array: Array) -> bool:
    """Return whether two elements of an array differ."""
    return array.size > 1 and bool((array != array.reshape(-1)[0]).any())


def is_uniform(array: Array) -> bool:
    """Return whether two or more elements are all the same."""
    if array.size < 2:
        return False
    row = array[(0,) * (array.ndim - 1)][:_FEW]  # a view in memory order
    return bool((row == row[0]).all() and (array == row[0]).all())


def is_again(scope: Path, path: Path) -> bool:
    """Return whether ``scope`` is a repeated call of the module at ``path``."""
    return len(scope) == len(path) and all(
        a == b or (a.startswith(b) and _AGAIN.fullmatch(a[len(b) :]))
        for a, b in zip(scope, path, strict=True)
    )


def called_again(graph: Graph) -> dict[Path, Path]:
    """Map scopes to the modules they call again, from the weights they read.

    Scopes without weights follow: ``block_1`` calls ``block`` again if only that has
    weights. A matrix without a key, as of a convolution with a folded norm, belongs to
    the first scope that reads it.
    """
    owners: dict[Path, Path] = {}
    modules: set[Path] = set()
    first: dict[str, Path] = {}
    for node in graph.nodes:
        for name in node.inputs:
            if name is None or name not in graph.constants or not node.scope:
                continue
            origin = original(graph, name)
            path = tuple(origin.split("."))[:-1]
            if not is_dotted(origin):
                if not _is_matrix(graph.constants[name]):
                    continue
                path = first.setdefault(origin, node.scope)
            path = _without_uncalled(node.scope, path)
            if path != node.scope and is_again(node.scope, path):
                owners[node.scope] = path
            modules.update(path[:length] for length in range(1, len(path) + 1))
    others = {node.scope for node in graph.nodes} - owners.keys()
    paths = ((scope, _first_call(scope, modules)) for scope in others)
    return owners | {scope: path for scope, path in paths if path != scope}


def _without_uncalled(scope: Path, path: Path) -> Path:
    """Return ``path`` without segments that ``scope``, a repeated call of it, lacks.

    A module of which only submodules are called is not in scopes.
    """
    more = len(path) - len(scope)
    shorter = (path[:at] + path[at + more :] for at in range(len(scope) * (more > 0)))
    return next((one for one in shorter if is_again(scope, one)), path)


def _is_matrix(array: Array) -> bool:
    """Return whether an array is a weight of several numbers, not a filled one."""
    return array.ndim > 1 and is_float(array.dtype) and has_unequal_elements(array)


def _first_call(scope: Path, modules: set[Path]) -> Path:
    """Return ``scope`` with the names of modules that are called again in it."""
    for length in range(1, len(scope) + 1):
        *around, name = scope[:length]
        first = (*around, _AGAIN_AT_END.sub("", name))
        if scope[:length] not in modules and first in modules:
            scope = (*first, *scope[length:])
    return scope
