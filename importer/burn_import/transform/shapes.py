"""User-given extents of inputs, fixed numbers or names."""

from collections.abc import Mapping
from dataclasses import replace

from burn_import.options import Extents, is_extent
from burn_import.transform.errors import WrongOptions
from burn_ir.containers import kind_of
from burn_ir.dim import Dim, Poly, bind, symbol, symbols
from burn_ir.errors import Problem
from burn_ir.ops.support import shown
from burn_ir.raw import RawModel
from burn_ir.types import Type


def with_shapes(
    types: Mapping[str, Type], shapes: Mapping[str, Extents]
) -> dict[str, Type]:
    """Return the input ``types`` by name, those in ``shapes`` with these extents.

    An extent that is symbolic in the file may become a number or get another name. The
    change applies everywhere: if ``batch`` becomes 4 in one input, it does in all.

    Raises:
        WrongOptions: an extent contradicts the file or another one; all are listed.
    """
    run = _Shaping(types)
    for name, extents in shapes.items():
        run.bind_input(name, extents)
    result = {name: run.bound(value_type) for name, value_type in types.items()}
    for name, extents in shapes.items():
        result[name] = run.with_extents(name, result[name], extents)
    if run.problems:
        raise WrongOptions(run.problems)
    return result


def reshaped_model(model: RawModel, shapes: Mapping[str, Extents]) -> RawModel:
    """Return ``model`` with ``shapes`` extents of its inputs.

    Raises:
        WrongOptions: as :func:`with_shapes` does, or a default has another shape.
    """
    graph = model.graph
    inputs = with_shapes(graph.inputs, shapes)
    problems = [
        _differs(
            name,
            shown(inputs[name].shape or ()),
            str(list(array.shape)),
            "its default has",
        )
        for name, array in graph.defaults.items()
        if not _fits(inputs[name], array.shape)
    ]
    if problems:
        raise WrongOptions(problems)
    return replace(model, graph=replace(graph, inputs=inputs))


def _fits(value_type: Type, shape: tuple[int, ...]) -> bool:
    if value_type.shape is None:
        return True
    return len(value_type.shape) == len(shape) and all(
        not isinstance(a, int) or a == b
        for a, b in zip(value_type.shape, shape, strict=True)
    )


def _differs(name: str, got: str, expected: str, reason: str) -> Problem:
    return Problem(f"input {name!r}: expected {expected}, as {reason}, got {got}")


class _Shaping:
    """Bindings of the input symbols, and contradictions among them."""

    def __init__(self, types: Mapping[str, Type]) -> None:
        self.types = types
        self.values: dict[str, Dim] = {}
        #: The input that determined the binding of each symbol.
        self.deciders: dict[str, str] = {}
        self.problems: list[Problem] = []

    def bind_input(self, name: str, extents: Extents) -> None:
        """Bind the symbols of input ``name`` to ``extents``."""
        wrong = [extent for extent in extents if not is_extent(extent)]
        if wrong:
            message = f"expected numbers and names as extents, got {wrong[0]!r}"
            self.problems.append(Problem(f"input {name!r}: {message}"))
            return
        value_type = self.types[name]
        if kind_of(value_type) != "tensor":
            message = f"expected a tensor to give a shape, got {value_type.name}"
            self.problems.append(Problem(f"input {name!r}: {message}"))
            return
        if value_type.shape is None:
            return
        if len(value_type.shape) != len(extents):
            expected = f"{len(value_type.shape)} extents {shown(value_type.shape)}"
            got = f"{len(extents)}: {shown(extents)}"
            self.problems.append(_differs(name, got, expected, "the file has"))
            return
        for axis, (old, extent) in enumerate(
            zip(value_type.shape, extents, strict=True)
        ):
            self.bind_extent(name, axis, old, _dim(extent))

    def bind_extent(self, name: str, axis: int, old: Dim, new: Dim) -> None:
        """Bind the extent ``old`` of an input's axis to ``new``."""
        where = f"{name!r}, axis {axis}"
        if isinstance(old, int):
            if old != new:
                message = f"expected {old}, as the file has, got {new}"
                self.problems.append(Problem(f"input {where}: {message}"))
            return
        if (one := _symbol_name(old)) is None:
            return  # expressions are compared after their symbols are bound
        first = self.values.setdefault(one, new)
        decider = self.deciders.setdefault(one, name)
        if first != new:
            reason = f"{one!r} is in input {decider!r}"
            message = f"expected {first}, as {reason}, got {new}"
            self.problems.append(Problem(f"input {where}: {message}"))

    def bound(self, value_type: Type) -> Type:
        """Return ``value_type`` with its symbols replaced by their bindings."""
        if value_type.shape is None:
            return value_type
        return value_type.with_shape([self.bind(dim) for dim in value_type.shape])

    def bind(self, dim: Dim) -> Dim:
        """Return ``dim`` with its symbols replaced by their bindings."""
        names = {name: symbol(name) for name in symbols(dim)}
        result: Dim = bind(dim, {**names, **self.values})
        return result

    def with_extents(self, name: str, value_type: Type, extents: Extents) -> Type:
        """Return the type with ``extents`` for expressions, or for an unknown shape."""
        if self.problems:
            return value_type
        if value_type.shape is None:
            return value_type.with_shape([_dim(extent) for extent in extents])
        dims = []
        for axis, (old, extent) in enumerate(
            zip(value_type.shape, extents, strict=True)
        ):
            new = _dim(extent)
            if isinstance(old, int) and old != new:
                message = f"expected {old}, as follows from the others, got {new}"
                self.problems.append(Problem(f"input {name!r}, axis {axis}: {message}"))
            dims.append(new)
        return value_type.with_shape(dims)


def _dim(extent: int | str) -> Dim:
    return symbol(extent) if isinstance(extent, str) else int(extent)


def _symbol_name(dim: Dim) -> str | None:
    """Return the name of a dimension that is one symbol; None for expressions."""
    names = list(symbols(dim))
    return names[0] if isinstance(dim, Poly) and dim == symbol(names[0]) else None
