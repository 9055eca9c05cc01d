"""A program to a graph: names to values, calls to nodes by the rules."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from burn.record.errors import shown
from burn_import.exported.builder import BOOL, FLOAT64, INT64, Builder, Nodes, Value
from burn_import.exported.checked import GRAPH, check
from burn_import.exported.extents import named_symbols
from burn_import.exported.frame import Frame
from burn_import.exported.rules import RULES
from burn_import.exported.schema import (
    Argument,
    GraphRef,
    Ignored,
    ScalarType,
    SymbolRef,
    TensorRef,
    argument,
    field,
    scalar_name,
    scopes,
    union,
)
from burn_import.exported.symbols import Symbols
from burn_import.exported.table import Entry
from burn_import.exported.weights import Stored
from burn_import.pytorch.elements import ELEMENTS
from burn_ir import InvalidModel, ModelError, UnsupportedModel
from burn_ir.blame import FAULTS, told
from burn_ir.errors import Problem
from burn_ir.raw import RawGraph
from burn_ir.types import Type

_PREFIX = "torch.ops."


class Program:
    """The program in the JSON of an archive.

    ``stored`` gives its tensors.
    """

    def __init__(self, content: Any, stored: Stored) -> None:
        self.module = content["graph_module"]
        self.stored = stored
        self.symbols = Symbols()
        #: What is stored, by path: its name in the program, and in the graph.
        self.held: dict[str, tuple[str, str]] = {}
        self.problems: dict[type[ModelError], list[Problem]] = {}

    def graph(self) -> RawGraph:
        """The main graph, with everything that a graph inside uses.

        Raises:
            ModelError: calls are not supported, or contradict the schema; all of them.
        """
        content = self.module["graph"]
        frame = Frame(content, Nodes())
        signature = self.module["signature"]
        inputs = self.inputs(frame, signature["input_specs"])
        self.run(content, frame)
        outputs = self.outputs(frame, signature["output_specs"])
        changed = self.changed(frame)
        states = {name: frame.out.constants.pop(name) for name in changed}
        inputs.update((name, Type.of(states[name]).forget()) for name in states)
        for kind in (InvalidModel, UnsupportedModel):
            if self.problems.get(kind):
                raise kind([p for found in self.problems.values() for p in found])
        return RawGraph(
            "main",
            inputs,
            (*outputs, *changed.values()),
            tuple(frame.out.nodes),
            frame.out.constants,
            states=states,
        )

    def inputs(self, frame: Frame, specs: Sequence[Any]) -> dict[str, Type]:
        """The types of what a user gives; weights become constants."""
        given: list[str] = []
        for spec in specs:
            kind, body = union(spec)
            if kind == "user_input":
                arg = argument(body.get("arg"))
                if isinstance(arg, TensorRef):
                    given.append(arg.name)
                elif isinstance(arg, SymbolRef):
                    raise UnsupportedModel(
                        f"input {shown(arg.name)}: expected a tensor"
                    )
            elif kind in _STORED:
                self.store(frame, kind, body)
            elif kind not in ("constant_input", "token"):
                raise UnsupportedModel(f"inputs of kind {shown(kind)} are not read")
        tensors = frame.meta["tensor_values"]
        sizes = {name: tensors[name]["sizes"] for name in given if name in tensors}
        named_symbols(self.symbols, sizes)
        found = {}
        for name in given:
            value = self.typed(frame, name)
            unique = frame.out.fresh(name)
            frame.values[name] = Value(unique, value.dtype, value.dims)
            found[unique] = Type(value.dtype, value.dims)
        return found

    def store(self, frame: Frame, kind: str, body: Any) -> None:
        name = field(field(body, "arg", dict), "name", str)
        path = field(body, _STORED[kind], str)
        array = self.stored.tensor(path).array()
        known = self.typed(frame, name)
        if (array.dtype, array.shape) != (known.dtype, known.dims):
            raise InvalidModel(
                f"tensor {shown(path)}: expected {known.dtype}{list(known.dims or ())},"
                f" got {array.dtype}{list(array.shape)}"
            )
        unique = frame.out.fresh(path)
        frame.out.constants[unique] = array
        frame.values[name] = Value(unique, array.dtype, array.shape)
        self.held[path] = (name, unique)

    def outputs(self, frame: Frame, specs: Sequence[Any]) -> tuple[str, ...]:
        """The names of what a user gets; what is stored learns its new value."""
        found = []
        for spec in specs:
            kind, body = union(spec)
            if kind == "user_output":
                arg = argument(body.get("arg"))
                if isinstance(arg, TensorRef):
                    found.append(self.output(frame, arg.name))
            elif kind in _MUTATED:
                result = field(field(body, "arg", dict), "name", str)
                path = field(body, _MUTATED[kind], str)
                if path not in self.held:
                    raise InvalidModel(f"expected a tensor {shown(path)}, found none")
                frame.values[self.held[path][0]] = frame.value(result)
            elif kind not in ("token", "user_input_mutation"):
                raise UnsupportedModel(f"outputs of kind {shown(kind)} are not read")
        return tuple(found)

    def output(self, frame: Frame, name: str) -> str:
        """What the output ``name`` is called; what is wrong with it is noted."""
        try:
            return frame.value(name).name
        except UnsupportedModel as error:
            self.note(UnsupportedModel, error, "", "")
        except InvalidModel as error:
            if not self.problems:  # else it may be missing because of those
                self.note(InvalidModel, error, "", "")
        return name

    def changed(self, frame: Frame) -> dict[str, str]:
        """What is stored and replaced by a call: its name, and that of what by."""
        pairs = {
            unique: self.output(frame, name) for name, unique in self.held.values()
        }
        return {unique: after for unique, after in pairs.items() if after != unique}

    def run(self, content: Any, frame: Frame) -> None:
        """Write the nodes of all calls; what is wrong with one is noted."""
        for node in content["nodes"]:
            target = node["target"]
            name = node.get("name") or target
            try:
                self.call(frame, node, target.removeprefix(_PREFIX), str(name))
            except ModelError as error:
                self.note(type(error), error, target, str(name))
            except FAULTS as error:  # arguments of kinds that no exporter writes
                self.note(InvalidModel, InvalidModel(told(error)), target, str(name))

    def note(
        self, kind: type[ModelError], error: Exception, target: str, name: str
    ) -> None:
        kind = kind if kind in (InvalidModel, UnsupportedModel) else InvalidModel
        found = self.problems.setdefault(kind, [])
        if isinstance(error, ModelError) and any(p.node for p in error.problems):
            found += [p for p in error.problems if p not in found]  # of a graph inside
        else:
            found.append(Problem(str(error), name, target.removeprefix(_PREFIX)))

    def call(self, frame: Frame, node: Any, target: str, name: str) -> None:
        """Write one call of an operator."""
        results = [argument(of) for of in node["outputs"]]
        if target not in RULES:
            for ref in _refs(results):
                frame.values[ref.name] = self.typed(frame, ref.name)
            raise UnsupportedModel("this operator is not supported")
        entry = RULES[target]
        types = [self.typed(frame, ref.name) for ref in _refs(results)]
        path, classes = _scope(node.get("metadata") or {})
        builder = Builder(frame.out, _leaf(results, name), types, path, classes)
        names = [(of["name"], argument(of["arg"])) for of in node["inputs"]]
        args = [(key, self.resolved(frame, arg)) for key, arg in names]
        if not target.startswith("aten."):  # functions of Python, by position
            args = [("", value) for _, value in args]
        made = _called(entry, builder, args)
        self.bind(frame, results, made)
        self.alias(frame, entry, names, results, (name, target))

    def bind(self, frame: Frame, results: Sequence[Argument], made: Any) -> None:
        """Give the names of the results to what a rule made."""
        values = made if isinstance(made, tuple | list) else (made,)
        for ref, value in zip(_refs(results), values, strict=False):
            known = self.typed(frame, ref.name)
            if value is None:
                continue
            if not isinstance(value, Value):
                value = Builder(frame.out, ref.name, [known]).constant(
                    value, known.dtype
                )
            frame.values[ref.name] = Value(
                value.name, known.dtype, known.dims, known.is_number
            )

    def alias(
        self,
        frame: Frame,
        entry: Entry,
        args: Sequence[tuple[str, Argument]],
        results: Sequence[Argument],
        where: tuple[str, str],
    ) -> None:
        """Note which values share memory, and what a change in place changes."""
        first = next((a for _, a in args if isinstance(a, TensorRef)), None)
        refs = list(_refs(results))
        if entry.mutates is not None and first is not None and refs:
            frame.change(first.name, refs[0].name, *where)
        elif entry.views and first is not None:
            for ref in refs:
                frame.view(ref.name, first.name)

    def typed(self, frame: Frame, name: str) -> Value:
        """A value as the program types it."""
        tensors = frame.meta["tensor_values"]
        if name in tensors:
            meta = tensors[name]
            element = ELEMENTS[scalar_name(meta["dtype"])]
            if element.dtype is None:
                raise UnsupportedModel(f"dtype {element.name} is not supported")
            sizes = meta["sizes"]
            dims = tuple(self.symbols.extent(size) for size in sizes)
            return Value(name, element.dtype, dims)
        for key, dtype in _NUMBERS.items():
            if name in (frame.meta.get(key) or {}):
                return Value(name, dtype, (), True)
        raise InvalidModel(f"expected a type for {shown(name)}, found none")

    def resolved(self, frame: Frame, arg: Argument) -> Any:
        """An argument with values in place of names."""
        if isinstance(arg, TensorRef | SymbolRef):
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
        """A graph inside, which reads ``operands`` from the graph around it."""
        check(content, GRAPH, "a graph inside")
        inner = Frame(content, frame.out.inner())
        names = [argument(of) for of in content["inputs"]]
        refs = [ref for ref in names if isinstance(ref, TensorRef | SymbolRef)]
        inner.values.update(zip((ref.name for ref in refs), operands, strict=True))
        self.run(content, inner)
        outputs = []
        for of in content["outputs"]:
            ref = argument(of)
            if not isinstance(ref, TensorRef):
                raise UnsupportedModel("expected a graph inside to return tensors")
            value = inner.value(ref.name)
            builder = Builder(inner.out, "result", [value])
            outputs.append(builder.op("Identity", value).name)
        return RawGraph("body", {}, tuple(outputs), tuple(inner.out.nodes), {})


#: Kinds of inputs that are stored, and the field with their path.
_STORED = {
    "parameter": "parameter_name",
    "buffer": "buffer_name",
    "tensor_constant": "tensor_constant_name",
}
#: Kinds of outputs that are stored for the next call, and the field with their path.
_MUTATED = {
    "buffer_mutation": "buffer_name",
    "parameter_mutation": "parameter_name",
}
_NUMBERS = {
    "sym_int_values": INT64,
    "sym_float_values": FLOAT64,
    "sym_bool_values": BOOL,
}


def _refs(results: Sequence[Argument]) -> list[TensorRef | SymbolRef]:
    """The names among results, those of a list of tensors one by one."""
    found: list[TensorRef | SymbolRef] = []
    for result in results:
        if isinstance(result, list):
            found += [ref for ref in result if isinstance(ref, TensorRef)]
        elif isinstance(result, TensorRef | SymbolRef):
            found.append(result)
    return found


def _leaf(results: Sequence[Argument], name: str) -> str:
    refs = _refs(results)
    return refs[0].name if len(refs) == 1 else name


def _scope(metadata: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The path of a call's module, and the classes along it."""
    path: tuple[str, ...] = ()
    found: list[tuple[tuple[str, ...], str]] = []
    for text, cls in scopes(metadata):
        path = tuple(segment for segment in text.split(".") if segment)
        found.append((path, cls))
    classes = [""] * (len(path) + 1)
    for inner, cls in found:
        if inner == path[: len(inner)]:
            classes[len(inner)] = cls
    return path, tuple(classes[1:])


def _called(entry: Entry, builder: Builder, args: Sequence[tuple[str, Any]]) -> Any:
    """What the rule makes of a call.

    Raises:
        UnsupportedModel: it has an argument that the rule does not know.
    """
    parameters = inspect.signature(entry.rule).parameters
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return entry.rule(builder)
    known = list(parameters)[1:]
    positional = [value for key, value in args if not key]
    named = {key: value for key, value in args if key}
    unknown = sorted(set(named) - set(known))
    ignored = [key for key in unknown if key in _WITHOUT_EFFECT or named[key] is None]
    if set(unknown) - set(ignored):
        raise UnsupportedModel(f"expected arguments {known}, got {shown(unknown)}")
    kept = {key: value for key, value in named.items() if key not in ignored}
    return entry.rule(builder, *positional, **kept)


#: Arguments of many operators that change no value.
_WITHOUT_EFFECT = frozenset(
    {
        *("device", "layout", "pin_memory", "memory_format", "non_blocking", "copy"),
        *("cudnn_enable", "cudnn_enabled", "requires_grad", "generator"),
    }
)
