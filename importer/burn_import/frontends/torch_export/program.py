"""Conversion of a program's calls to nodes by the rules."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import zip_longest
from typing import Any

from burn.record.errors import shown
from burn_import.frontends.checkpoints.element_types import ELEMENTS
from burn_import.frontends.torch_export.builder import (
    BOOL,
    FLOAT64,
    INT64,
    Builder,
    Value,
)
from burn_import.frontends.torch_export.memory_layout import Layout
from burn_import.frontends.torch_export.pytrees import GRAPH, check
from burn_import.frontends.torch_export.registry import Entry
from burn_import.frontends.torch_export.rule_calls import (
    WITHOUT_EFFECT,
    call_rule,
    rule_of,
)
from burn_import.frontends.torch_export.schema import (
    Argument,
    GraphRef,
    Ignored,
    ScalarType,
    SymbolRef,
    TensorRef,
    argument,
    scalar_name,
    scopes,
)
from burn_import.frontends.torch_export.subgraphs import (
    bind_changed,
    returned_values,
    writes_inside,
)
from burn_import.frontends.torch_export.symbolic_extents import Symbols
from burn_import.frontends.torch_export.value_table import Frame, written_back
from burn_ir import InvalidModel, ModelError, UnsupportedModel
from burn_ir.dim import Dim
from burn_ir.error_context import FAULTS, error_text
from burn_ir.errors import Problem
from burn_ir.graph import ROOT_SCOPE
from burn_ir.raw import RawGraph

_PREFIX = "torch.ops."
#: Largest nesting of branches; the source of deeper ones would be unreadable.
_DEEPEST = 24
#: The longest chain of views through which a change is propagated.
_LONGEST = 16


class Calls:
    """The conversion of a program's calls to nodes; collects problems."""

    def __init__(self) -> None:
        self.symbols = Symbols()
        self.problems: dict[type[ModelError], list[Problem]] = {}

    def run(self, content: Any, frame: Frame) -> None:
        """Write the nodes of all calls; errors are collected."""
        for node in content["nodes"]:
            target = node["target"]
            name = node.get("name") or target
            try:
                self.call(frame, node, target.removeprefix(_PREFIX), str(name))
            except ModelError as error:
                self.note(type(error), error, target, str(name))
            except FAULTS as error:  # arguments of kinds that no exporter writes
                self.note(
                    InvalidModel, InvalidModel(error_text(error)), target, str(name)
                )

    def note(
        self, kind: type[ModelError], error: Exception, target: str, name: str
    ) -> None:
        kind = kind if kind in (InvalidModel, UnsupportedModel) else InvalidModel
        problems = self.problems.setdefault(kind, [])
        if isinstance(error, ModelError) and any(p.node for p in error.problems):
            problems += [
                p for p in error.problems if p not in problems
            ]  # of a subgraph
        else:
            problems.append(Problem(str(error), name, target.removeprefix(_PREFIX)))

    def call(self, frame: Frame, node: Any, target: str, name: str) -> None:
        """Write one call of an operator."""
        results = [argument(of) for of in node["outputs"]]
        types = [self.typed(frame, ref.name) for ref in _refs(results)]
        # If this call fails, its readers must not report errors too.
        frame.values.update((value.name, value) for value in types)
        path, classes = _scope(node.get("metadata") or {})
        builder = Builder(frame.out, _leaf(results, name), types, path, classes)
        names = [(of["name"], argument(of["arg"])) for of in node["inputs"]]
        args = [(key, self.resolved(frame, arg)) for key, arg in names]
        entry = rule_of(target, [*types, *(value for _, value in args)])
        if not target.startswith("aten."):  # Python functions have positional arguments
            args = [("", x) for key, x in args if key not in WITHOUT_EFFECT]
        start = len(frame.out.nodes)
        values = operand = call_rule(entry, builder, args)
        self.bind(frame, results, values, target)
        values = self.rename(frame, results, values, start)
        if entry.views or _is_alias(entry, target, args, operand):
            self.view(frame, names, args, results, target)
        changes = [*_changes(frame, entry, names, _refs(results), values)]
        inside = writes_inside(frame, names, entry)
        bind_changed(frame, [ref.name for ref in _refs(results)], inside)
        for ref, value in (*changes, *inside):
            self.change(frame, ref, value, builder, target)

    def bind(
        self, frame: Frame, results: Sequence[Argument], output: Any, target: str
    ) -> None:
        """Bind the names of the results to the output of a rule.

        Results that the rule does not compute are errors where they are read.
        """
        values = output if isinstance(output, tuple | list) else (output,)
        refs = _refs(results)
        for index, (ref, value) in enumerate(zip_longest(refs, values[: len(refs)])):
            type_ = self.typed(frame, ref.name)
            if value is None:
                message = f"its result {index} is not computed"
                frame.stale[ref.name] = Problem(message, ref.name, target)
                continue
            if not isinstance(value, Value):
                value = Builder(frame.out, ref.name, [type_]).constant(
                    value, type_.dtype
                )
            frame.values[ref.name] = replace(type_, name=value.name)

    def rename(
        self, frame: Frame, results: Sequence[Argument], values: Any, start: int
    ) -> Any:
        """Rename the nodes' outputs from ``start`` on to the names of the results.

        Returns the output of the rule under these names.
        """
        produced = {out for node in frame.out.nodes[start:] for out in node.outputs}
        names: dict[str | None, str] = {}
        for ref in _refs(results):
            value = frame.values[ref.name]
            free = ref.name in produced or ref.name not in frame.out.names
            if value.name in produced and value.name != ref.name and free:
                names |= {value.name: ref.name, ref.name: value.name}
                frame.out.names.add(ref.name)
                frame.values[ref.name] = replace(value, name=ref.name)
        for index, node in enumerate(frame.out.nodes[start:] if names else (), start):
            inputs = tuple(names.get(name, name) for name in node.inputs)
            outputs = tuple(names.get(name, name) for name in node.outputs)
            frame.out.nodes[index] = replace(node, inputs=inputs, outputs=outputs)
        if not isinstance(values, tuple):
            return values
        return tuple(
            replace(x, name=names.get(x.name, x.name)) if isinstance(x, Value) else x
            for x in values
        )

    def view(
        self,
        frame: Frame,
        names: Sequence[tuple[str, Argument]],
        args: Sequence[tuple[str, Any]],
        results: Sequence[Argument],
        target: str,
    ) -> None:
        """Record which values share memory."""
        first = _first_tensor(names)
        refs = _refs(results)
        if first is not None:
            index, name = first
            # A view with several results has no inverse.
            source = target if len(refs) == 1 else ""
            rest = [*args[:index], *args[index + 1 :]]
            for ref in refs:
                frame.view(ref.name, name, source, rest)

    def change(
        self, frame: Frame, changed: str, value: Value, g: Builder, target: str
    ) -> None:
        """Record an in-place change, and write the changed bases of a view."""
        name = frame.change(changed, value, g.name, target)
        for _ in range(_LONGEST):
            if name not in frame.origin:
                return
            base, view, rest = frame.origin[name]
            old, new = frame.values[base], frame.values[name]
            back = written_back(view, rest, old, new)
            if back is None:
                return
            word = old.name.rpartition(".")[2] or base
            whole = replace(g, name=word, results=[old])
            result = call_rule(rule_of(back[0], [old]), whole, list(back[1].items()))
            frame.refresh(base, replace(old, name=result.name))
            name = base

    def retake(self, frame: Frame, name: str) -> None:
        """Recompute a view if its base was changed in place."""
        for first, base, view, rest in frame.retaken(name):
            old = frame.values[first]
            g = Builder(frame.out, first, [self.typed(frame, first)])
            args = [("self", frame.values[base]), *rest]
            value = call_rule(rule_of(view, [old]), g, args)
            frame.refresh(first, replace(old, name=value.name))

    def typed(self, frame: Frame, name: str) -> Value:
        """Return a value with the type in the program."""
        tensors = frame.meta["tensor_values"]
        if name in tensors:
            meta = tensors[name]
            element = ELEMENTS[scalar_name(meta["dtype"])]
            if element.dtype is None:
                raise UnsupportedModel(f"dtype {element.name} is not supported")
            sizes = meta["sizes"]
            dims = tuple(self.symbols.extent(size) for size in sizes)
            layout = cache(partial(self.layout, meta, dims))
            return Value(name, element.dtype, dims, layout=layout)
        for key, dtype in _NUMBERS.items():
            if name in (frame.meta.get(key) or {}):
                return Value(name, dtype, (), True)
        raise InvalidModel(f"expected a type for {shown(name)}, found none")

    def layout(self, meta: Mapping[str, Any], dims: tuple[Dim, ...]) -> Layout:
        """Return the memory layout of a tensor."""
        strides = tuple(self.symbols.extent(size) for size in meta["strides"])
        if len(strides) != len(dims):
            raise InvalidModel(f"expected {len(dims)} strides, got {len(strides)}")
        return Layout(dims, strides, self.symbols.extent(meta["storage_offset"]))

    def resolved(self, frame: Frame, arg: Argument) -> Any:
        """Return an argument with values in place of names."""
        if isinstance(arg, TensorRef | SymbolRef):
            self.retake(frame, arg.name)
            return frame.value(arg.name)
        if isinstance(arg, list):
            return [self.resolved(frame, item) for item in arg]
        if isinstance(arg, ScalarType):
            return ELEMENTS[arg.name].dtype
        if isinstance(arg, GraphRef):
            return lambda operands: self.body(frame, arg.graph, operands)
        return None if isinstance(arg, Ignored) else arg

    def body(
        self, frame: Frame, content: Mapping[str, Any], operands: Sequence[Value]
    ) -> RawGraph:
        """Return a subgraph, which captures ``operands`` from the outer graph."""
        check(content, GRAPH, "a graph inside")
        if frame.depth >= _DEEPEST:
            raise UnsupportedModel(f"expected at most {_DEEPEST} nested graphs")
        inner = Frame(content, frame.out.inner(), frame.depth + 1)
        names = [argument(of) for of in content["inputs"]]
        parameters = [
            (ref.name, operand)
            for ref, operand in zip(names, operands, strict=True)
            if isinstance(ref, TensorRef | SymbolRef)
        ]
        inner.values.update(parameters)
        self.run(content, inner)
        outputs = []
        for value in returned_values(inner):
            builder = Builder(inner.out, "result", [value])
            outputs.append(builder.op("Identity", value).name)
        after = [
            (operand, inner.values[inner.same.get(n, n)]) for n, operand in parameters
        ]
        frame.writes += [pair for pair in after if pair[0].name != pair[1].name]
        return inner.out.body({}, outputs)


_NUMBERS = {
    "sym_int_values": INT64,
    "sym_float_values": FLOAT64,
    "sym_bool_values": BOOL,
}


def _refs(results: Sequence[Argument]) -> list[TensorRef | SymbolRef]:
    """Return the names among results, including those in lists."""
    refs: list[TensorRef | SymbolRef] = []
    for result in results:
        if isinstance(result, list):
            refs += [ref for ref in result if isinstance(ref, TensorRef)]
        elif isinstance(result, TensorRef | SymbolRef):
            refs.append(result)
    return refs


def _changes(
    frame: Frame,
    entry: Entry,
    names: Sequence[tuple[str, Argument]],
    refs: Sequence[TensorRef | SymbolRef],
    values: Any,
) -> Iterator[tuple[str, Value]]:
    """Yield the tensors that a call changes in place, with their new values."""
    arguments = dict(names)
    if entry.mutates is not None and refs:
        ref, first = arguments.get(entry.mutates), _first_tensor(names)
        changed = ref.name if isinstance(ref, TensorRef) else first and first[1]
        if changed is not None:
            frame.same[refs[0].name] = frame.same.get(changed, changed)
            yield changed, frame.values[refs[0].name]
    if not entry.writes or not isinstance(values, tuple):
        return
    for key, value in zip(entry.writes, values[len(refs) :], strict=False):
        ref = arguments.get(key)
        if isinstance(ref, TensorRef):
            yield ref.name, replace(frame.value(ref.name), name=value.name)


def _is_alias(
    entry: Entry, target: str, args: Sequence[tuple[str, Any]], value: Any
) -> bool:
    """Return whether a call returns its operand; ``value`` is the rule's result."""
    first = next((x for _, x in args if isinstance(x, Value)), None)
    if not entry.is_alias or first is None or dict(args).get("copy"):
        return False
    if target == "aten.contiguous.default" and first.layout is not None:
        return first.layout().is_ordered
    is_restored = dict(args).get("train") is False  # dropout that is the identity
    return isinstance(value, Value) and (is_restored or value.name == first.name)


def _first_tensor(names: Sequence[tuple[str, Argument]]) -> tuple[int, str] | None:
    """Return the position and name of the first tensor among arguments."""
    for index, (_, arg) in enumerate(names):
        if isinstance(arg, TensorRef):
            return index, arg.name
    return None


def _leaf(results: Sequence[Argument], name: str) -> str:
    refs = _refs(results)
    return refs[0].name if len(refs) == 1 else name


def _scope(metadata: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the path of a call's module, and the classes along it.

    The path of the outermost module is ``ROOT_SCOPE``, and () if the program does not
    record the module.
    """
    path: tuple[str, ...] = ()
    segments: list[tuple[tuple[str, ...], str]] = []
    for text, cls in scopes(metadata):
        path = tuple(segment for segment in text.split(".") if segment)
        segments.append((path, cls))
    if segments and not path:
        return ROOT_SCOPE, ()
    classes = [""] * (len(path) + 1)
    for inner, cls in segments:
        if inner == path[: len(inner)]:
            classes[len(inner)] = cls
    return path, tuple(classes[1:])
