"""Hoisting of shared values into the common scope of their readers.

Exporters eliminate common subexpressions: a mask that every layer of a model needs is
computed only in the scope of the first one. Left there, the first layer would pass it
to the others, and no two layers would have equal code.
"""

from collections import Counter
from collections.abc import Hashable
from dataclasses import replace

from burn.dtypes import int64, is_float
from burn_import.passes.cleanup.dead_code import dead_code
from burn_import.provenance.path_segments import Path, common
from burn_import.rewriting.arrays import number
from burn_import.rewriting.graphs import with_nodes
from burn_import.structure.folded_expressions import infer_derived
from burn_import.structure.places import Places
from burn_ir.dim import Dim, Poly
from burn_ir.graph import Constants, Graph, Node
from burn_ir.names import free_name
from burn_ir.ops.cast import Cast
from burn_ir.ops.indexing import Gather
from burn_ir.ops.shape import Shape, Squeeze
from burn_ir.ops.support import ELEMENT_NUMBERS
from burn_ir.ops.weight_quantized import QuantizeDequantize


def hoist_shared_nodes(graph: Graph, node_paths: Places) -> Places:
    """Return ``node_paths`` with shared nodes hoisted to outer scopes.

    A node leaves a module that owns layers if it reads nothing from inside the
    module and is read outside of it. Nodes of modules without layers stay, since
    such modules exist to compute values for others, unless they and modules like them
    are the only readers; arithmetic on extents leaves these too. A layer leaves its
    module if its result depends only on input sizes, like a relative position bias.
    """
    run = _Hoisting(graph, node_paths)
    for node in reversed(graph.nodes):
        run.propose_move(node)
    for node in graph.nodes:
        run.settle(node)
    for node in reversed(graph.nodes):
        run.undo_move(node, node_paths.scopes[id(node)])
    moved = {
        i for i in node_paths.layers if run.scopes.get(i) != node_paths.scopes.get(i)
    }
    return Places(node_paths.layers, run.scopes, moved)


def with_input_extents(graph: Graph) -> Graph:
    """Return ``graph`` with the symbols of its inputs read from the inputs.

    Exporters read the length of a sequence from whatever they have, such as the keys of
    the first layer; values that depend on it, such as a relative position bias, could
    then not leave the layer.
    """
    sources = _symbol_sources(graph)
    nodes: list[Node] = []
    shapes: dict[str, str] = {}
    for node in graph.nodes:
        source = sources.get(_scalar_symbol(graph, node))
        if source is None or not _reads_computed_shape(graph, node):
            nodes.append(node)
            continue
        name, axis = source
        if name not in shapes:
            shapes[name] = free_name(f"{name}.shape", graph.types, graph.constants)
            nodes.append(Node(Shape(), (name,), (shapes[name],)))
        index = number(graph, axis, int64)
        nodes += _extent_nodes(graph, node.output, (shapes[name], index))
    # A module that computed nothing else has no result any more.
    return infer_derived(dead_code(with_nodes(graph, nodes))) if shapes else graph


def _extent_nodes(graph: Graph, name: str, operands: tuple[str, str]) -> list[Node]:
    """Return the nodes that compute ``name`` from a shape and an axis.

    TensorFlow's extents are int32.
    """
    dtype = graph.types[name].dtype
    if dtype == int64:
        return [Node(Gather(), operands, (name,))]
    whole = free_name(f"{name}.int64", graph.types, graph.constants)
    cast = Node(Cast(to=ELEMENT_NUMBERS[dtype]), (whole,), (name,))
    return [Node(Gather(), operands, (whole,)), cast]


def _reads_computed_shape(graph: Graph, node: Node) -> bool:
    """Return whether a node takes one extent from a shape."""
    if isinstance(node.op, Gather):
        return True
    source = graph.producers.get(node.inputs[0] or "")
    if not isinstance(node.op, Squeeze) or source is None:
        return False
    return isinstance(source.op, Shape) and source.inputs[0] not in graph.inputs


def with_outer_shapes(graph: Graph, node_paths: Places) -> tuple[Graph, Places]:
    """Return ``graph`` with shapes read outside of modules from values outside.

    A shape that all of several equal blocks use is read from a value in the first one,
    which could then be no call. The input of that block has the same shape.
    """
    scopes = dict(node_paths.scopes)
    scope_of: dict[str, Path] = {}
    first: dict[Hashable, str] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        own = scopes[id(node)]
        operand = node.inputs[0] if isinstance(node.op, Shape) else None
        if operand is not None and len(scope_of.get(operand, ())) > len(own):
            source = first.get((own, graph.types[operand].shape), operand)
            node = replace(node, inputs=(source,))
            scopes[id(node)] = own
        for name in filter(None, node.outputs):
            scope_of[name] = own
            first.setdefault((own, graph.types[name].shape), name)
        nodes.append(node)
    return with_nodes(graph, nodes), replace(node_paths, scopes=scopes)


def _symbol_sources(graph: Graph) -> dict[Dim | None, tuple[str, int]]:
    """Return an input and its axis for each of their symbols."""
    return {
        dim: (name, axis)
        for name in reversed(graph.arguments)
        for axis, dim in enumerate(graph.types[name].shape or ())
        if isinstance(dim, Poly) and str(dim).isidentifier()
    }


def _scalar_symbol(graph: Graph, node: Node) -> Dim | None:
    """Return the symbol that is the scalar result of a node; None for others."""
    contents = graph.types[node.outputs[0]].known if node.outputs[0] else None
    if contents is None or contents.shape or not isinstance(contents[()], Poly):
        return None
    return contents[()]


def extent_values(graph: Graph) -> set[str]:
    """Return the values that depend on the dimensions of the inputs alone."""
    names: set[str] = set()
    for node in graph.nodes:
        read = [name for name in node.inputs if name is not None]
        stored = all(name in names or name in graph.constants for name in read)
        are_inferred = all(graph.types[n].known is not None for n in node.outputs if n)
        if not node.op.bodies() and (
            are_inferred or (stored and node.op.deterministic)
        ):
            names.update(name for name in node.outputs if name is not None)
    return names


def owns_weight(constants: Constants, node: Node) -> bool:
    """Return whether ``node`` reads a weight, whose key fixes its module.

    The scale of a quantizer is named after the operand, wherever that is computed.
    """
    if isinstance(node.op, QuantizeDequantize):
        return False
    stored = [n for n in node.inputs if n in constants and n not in constants.literals]
    return any(
        n is not None and is_float(constants[n].dtype) and "." in n for n in stored
    )


def without_numbers(path: Path) -> Path:
    """Return what paths of siblings have in common, as ``layers.#`` of ``layers.0``."""
    return tuple(segment.rstrip("0123456789") or "#" for segment in path)


class _Hoisting:
    def __init__(self, graph: Graph, node_paths: Places) -> None:
        self.layers = node_paths.layers
        self.scopes = dict(node_paths.scopes)
        self.users = graph.users
        self.constants = graph.constants
        self.targets: dict[int, Path] = {}
        self.scope_of: dict[str, Path] = {}
        #: The number of nodes in each scope: an activation alone is no module.
        self.sizes = Counter(self.scopes.values())
        self.regular = extent_values(graph)
        #: Arithmetic on extents, which readers write with the shapes of their tensors.
        self.inferred = {
            id(node)
            for node in graph.nodes
            if all(graph.types[n].known is not None for n in node.outputs if n)
        }
        self.owning = {
            path[:length]
            for path in node_paths.layers.values()
            for length in range(len(path))
        }

    def propose_move(self, node: Node) -> None:
        """Record the common scope of ``node`` and its readers."""
        own = self.scopes[id(node)]
        readers = [
            self.targets[id(user)]
            for name in node.outputs
            if name is not None
            for user in self.users.get(name, ())
        ]
        fixed = bool(node.op.bodies()) or owns_weight(self.constants, node)
        if id(node) in self.layers:
            fixed = not self.regular.issuperset(filter(None, node.outputs))
        self.targets[id(node)] = own if fixed else common([own, *readers])

    def is_shared(self, node: Node, module: Path) -> bool:
        """Return whether a module and its siblings, and no other, read ``node``."""
        readers = {
            self.scopes[id(user)][: len(module)]
            for name in node.outputs
            if name is not None
            for user in self.users.get(name, ())
        }
        patterns = {without_numbers(reader) for reader in readers}
        return module in readers and patterns == {without_numbers(module)}

    def undo_move(self, node: Node, own: Path) -> None:
        """Undo a move if all readers of ``node`` stayed inside."""
        moved = self.scopes[id(node)]
        if moved == own:
            return
        readers = [
            self.scopes[id(user)]
            for name in node.outputs
            if name is not None
            for user in self.users.get(name, ())
        ]
        home = common([own, *readers])
        while home and len(home) < len(own) and own[len(home)].isdigit():
            home = home[:-1]  # lists run no code
        self.scopes[id(node)] = max(moved, home, key=len)

    def settle(self, node: Node) -> None:
        """Move ``node`` to the outermost scope that its operands and modules allow."""
        own = self.scopes[id(node)]
        length = len(own)
        sources = [self.scope_of[name] for name in node.inputs if name in self.scope_of]
        while length > len(self.targets[id(node)]):
            leaving = own[:length]
            inside = any(source[:length] == leaving for source in sources)
            is_module = leaving in self.owning or self.sizes[leaving] == 1
            is_module = is_module or id(node) in self.inferred
            if inside or not (is_module or self.is_shared(node, leaving)):
                break
            length -= 1
        while length and length < len(own) and own[length].isdigit():
            length -= 1  # lists run no code
        self.scopes[id(node)] = own[:length]
        self.scope_of.update(dict.fromkeys(filter(None, node.outputs), own[:length]))
