"""The runtime definitions and class members that a model needs."""

import ast
from collections.abc import Iterator
from functools import cache

from burn_import.standalone.library import Definition, External, Library, Member
from burn_import.standalone.pieces import Piece, piece_of
from burn_import.standalone.references import Names

#: Attributes that users of a module read, even if the module does not.
PUBLIC = frozenset(
    {"numpy", "item", "tolist", "shape", "dtype", "ndim", "load", "load_weights"}
)
#: The classes whose methods are operations.
_TENSORS = frozenset({("burn.methods", "Methods"), ("burn.tensor", "Tensor")})
#: Modules that do not compute on tensors.
_WITHOUT_TENSORS = frozenset(
    {"burn.box", "burn.dtypes", "burn.primitive", "burn.record.dtypes"}
    | {"burn.nn.containers.sequences", "burn.nn.init", "burn.nn.inputs"}
    | {"burn.nn.module", "burn.nn.record_checks", "burn.record.errors"}
    | {"burn.record.reader", "burn.tensor"}
)
#: The modules that run operations, and the one that has a replacement.
_DEVICES, _DEVICE = "burn.backend.", "burn.backend.base"
#: Operator methods, without underscores.
_OPERATORS = frozenset(
    {"neg", "invert", "getitem", "lt", "le", "gt", "ge", "eq", "ne", "and", "or", "xor"}
    | {f"{r}{name}" for r in ("", "r") for name in ("add", "sub", "mul", "truediv")}
    | {f"{r}{name}" for r in ("", "r") for name in ("floordiv", "mod", "matmul", "pow")}
)


class Dependencies:
    """The transitive closure of the definitions that a model reads.

    Functions on arrays (kernels of primitives and their helpers) do not affect
    which operators and methods tensors need; all other functions may work on
    tensors.
    """

    def __init__(self, library: Library) -> None:
        self.library = library
        #: Whether each definition may work on tensors.
        self.on_tensors: dict[Definition, bool] = {}
        #: The first reader of each definition; None is the model.
        self.readers: dict[Definition, Definition | None] = {}
        self.externals: dict[str, External] = {}
        self.attributes = set(PUBLIC)
        self.tensor_attributes = set(PUBLIC)
        # Without these, comparisons would fall back to those of ``object``.
        self.operators = {"__eq__", "__ne__"}

    def follow(self, names: Names) -> None:
        """Add the closure of tensor code that reads these names."""
        self._add_names(names, True, None)
        before = -1
        followed: dict[Definition, tuple[bool, int]] = {}
        while before != self._size():
            before = self._size()
            for definition, on_tensors in list(self.on_tensors.items()):
                members = self.members(definition)
                if followed.get(definition) == (on_tensors, len(members)):
                    continue  # it has the same pieces as in the last round
                followed[definition] = on_tensors, len(members)
                for piece in self._pieces(definition, members):
                    computes = on_tensors and piece.own[0] != "__init__"
                    self._add_names(piece.names, computes, definition)

    def requirements(self) -> Iterator[tuple[str, str]]:
        """Yield (operation or layer of the model, package that it imports)."""
        for definition in self.on_tensors:
            packages = [n for piece in self.pieces(definition) for n in piece.packages]
            if definition.module.startswith(_DEVICES) and definition.module != _DEVICE:
                packages.append("gradients")
            named = definition
            while packages and (reader := self.readers[named]) is not None:
                named = reader
            _, space, *_ = named.module.split(".")
            yield from ((f"{space}.{named.names[0]}", name) for name in packages)

    def pieces(self, definition: Definition) -> Iterator[Piece]:
        """Yield the statement of a definition, or the header and members of a class."""
        return self._pieces(definition, self.members(definition))

    def _pieces(self, definition: Definition, members: list[Member]) -> Iterator[Piece]:
        yield self.piece(definition.node, definition)
        for member in members:
            yield self.piece(member.node, member)

    def piece(self, node: ast.stmt, origin: Definition | Member) -> Piece:
        """Return the text and names of a statement."""
        return piece_of(node, origin.file, self.library)

    def members(self, definition: Definition) -> list[Member]:
        """Return the used members of a class."""
        return [m for m in definition.members if self._is_read(definition, m)]

    def _is_read(self, owner: Definition, member: Member) -> bool:
        name = member.name
        is_method = isinstance(member.node, ast.FunctionDef)
        is_tensor = (owner.module, owner.names[0]) in _TENSORS
        if is_tensor and name.strip("_") in _OPERATORS:
            return name in self.operators
        if name.startswith("__") or (not is_method and _has_fields(owner)):
            return True
        return name in (self.tensor_attributes if is_tensor else self.attributes)

    def _add_names(
        self, names: Names, on_tensors: bool, reader: Definition | None
    ) -> None:
        self.attributes |= names.attributes
        if on_tensors:
            self.tensor_attributes |= names.attributes
            self.operators |= names.operators
        for reference in names.references:
            if isinstance(reference.meaning, External):
                self.externals[reference.meaning.statement] = reference.meaning
            else:
                self.readers.setdefault(reference.meaning, reader)
                self._reach(reference.meaning, on_tensors)

    def _reach(self, definition: Definition, by_tensors: bool) -> None:
        now = self._works_on_tensors(definition, by_tensors)
        self.on_tensors[definition] = self.on_tensors.get(definition, False) or now

    def _works_on_tensors(self, definition: Definition, by_tensors: bool) -> bool:
        """Return whether values in a function may be tensors.

        Values in kernels are arrays, unless the kernel calls an operation.
        """
        always, like_readers = _tensor_use(definition, self.library)
        return always or (like_readers and by_tensors)

    def _size(self) -> int:
        names = (self.attributes, self.tensor_attributes, self.operators)
        marks = sum(self.on_tensors.values())
        return len(self.on_tensors) + marks + sum(map(len, names))


@cache
def _tensor_use(definition: Definition, library: Library) -> tuple[bool, bool]:
    """Return whether a definition works on tensors always, and if its readers do."""
    if definition.module in _WITHOUT_TENSORS:
        return False, False
    own = piece_of(definition.node, definition.file, library).names.references
    if any(_is_operation(r.meaning) and not r.is_kernel for r in own):
        return not definition.is_class, True
    if "composite" in definition.decorators:
        return True, True
    return False, "primitive" not in definition.decorators


def _is_operation(meaning: object) -> bool:
    decorators = meaning.decorators if isinstance(meaning, Definition) else ()
    return "primitive" in decorators or "composite" in decorators


@cache
def _has_fields(owner: Definition) -> bool:
    """Return whether a class's annotations define its constructor's parameters."""
    assert isinstance(owner.node, ast.ClassDef)
    bases = [ast.unparse(base) for base in owner.node.bases]
    return "dataclass" in owner.decorators or "NamedTuple" in bases
