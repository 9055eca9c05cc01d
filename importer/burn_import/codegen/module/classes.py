"""The text of one class: fields in ``__init__``, the traced body in ``__call__``."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from burn_import.codegen.class_text import ClassText, MethodText
from burn_import.codegen.containers.containers import Containers, Holders
from burn_import.codegen.containers.numbered_siblings import (
    Siblings,
    find_looped_lists,
    move_calls,
    moved_modules,
    numbered_siblings,
    siblings_in,
)
from burn_import.codegen.containers.stored_arrays import StoredArrays
from burn_import.codegen.loops.reroll import reroll_loops
from burn_import.codegen.merge.flattened_axes import as_reshapes
from burn_import.codegen.merge.merge_classes import Families, Family
from burn_import.codegen.merge.patching import Arrangement, patch, reorder_arguments
from burn_import.codegen.merge.unified_body import Body
from burn_import.codegen.module.methods import Method, split_into_methods
from burn_import.codegen.naming.function_names import (
    constant_roles,
    names_of_nouns,
    result_names,
)
from burn_import.codegen.printing.stored_numbers import unify_number_reads
from burn_import.codegen.printing.target import BURN, Target
from burn_import.codegen.printing.writer import FunctionWriter
from burn_import.codegen.sequence_steps import layer_text, sequence_text
from burn_import.codegen.trace.function import FunctionTrace, trace_part
from burn_import.provenance.path_segments import Path
from burn_import.structure import ModuleNode
from burn_import.structure.module_tree import calls_of
from burn_import.tracing.identifiers import MEMBERS, Namespace
from burn_import.tracing.trace import Block, ModuleCall
from burn_ir.containers import python_type
from burn_ir.graph import Node, nested_nodes


class ClassWriter:
    """Writer of a module's class; determines which stored arrays it reads."""

    def __init__(
        self,
        part: ModuleNode,
        holders: Holders,
        families: Families,
        nouns: Mapping[str, str],
        family: Family | None = None,
        target: Target = BURN,
    ) -> None:
        """``family`` has the modules that share the class, if there are several."""
        self.part = part
        self.target = target
        self.families = families
        self.family = family
        self.graph = part.graph
        calls = [call for item in part.items for call in calls_of(item)]
        self.submodules = {call.path: call.part for call in calls}
        self.trace: FunctionTrace = self.traced()
        part.layers = self.trace.layers
        settled = dict(part.tensors) if family else {}
        modules = self.modules()
        self.siblings = self.listed(modules)
        move_calls(self.trace.body, self.siblings)
        self.containers = Containers(moved_modules(modules, self.siblings), holders)
        self.nouns = dict(nouns)
        self.stored = StoredArrays(part, self.containers, self.nouns, settled)
        defaults = filter(self.is_stored, self.optional.values())
        self.stored.reserve([*constant_roles(self.trace.body), *defaults])
        reroll_loops(self.trace, self.containers, self.nouns)
        if family is not None and family.rolled:
            self.patch(self.trace, family)
        self.stored.roles = constant_roles(self.trace.body)
        body = Block(list(self.trace.body.statements), self.trace.body.results)
        self.rolled = replace(self.trace, body=body)

    def listed(self, modules: Mapping[Path, str]) -> list[Siblings]:
        """Return the numbered modules that a loop calls, which become lists."""
        if self.family is not None:
            return siblings_in(self.family.members[0].text.record_names)
        lists = self.target.has_record_names
        siblings = numbered_siblings(self.part, modules) if lists else []
        if not siblings:
            return []
        trace = self.traced()
        move_calls(trace.body, siblings)
        containers = Containers(moved_modules(modules, siblings), Holders(Namespace()))
        reroll_loops(trace, containers, {})
        return find_looped_lists(trace.body, containers, siblings)

    def traced(self) -> FunctionTrace:
        """Return the body, with calls in the argument order of the merged classes."""
        trace = trace_part(self.part)
        unify_number_reads(trace, self.graph)
        reorder_arguments(trace.body, self.arrangements())
        family = self.family
        if family is not None and not family.rolled:
            self.patch(trace, family)
        return trace

    def patch(self, trace: FunctionTrace, family: Family) -> None:
        """Parametrize ``trace`` by the differences within ``family``."""
        numerals = family.numerals
        trace.body.statements = as_reshapes(trace.body.statements, family.flattened)
        patch(trace, family.union, family.bodies, numerals.values, numerals.flags)

    def arrangements(self) -> dict[Path, Arrangement]:
        """Return the argument order of each module whose arguments have changed."""
        arrangements = self.families.arrangements
        return {
            call.path: arrangements[call.part.class_name]
            for item in self.part.items
            for call in calls_of(item)
            if not call.part.sequence and call.part.class_name in arrangements
        }

    def body(self, trace: FunctionTrace) -> Body:
        """Return the comparison data of the class with the body ``trace``."""
        weights = {c: ".".join(path) for c, path in self.stored.weights.items()}
        named = {**weights, **self.part.tensors}
        lines = [line.partition(" = ")[0] for line in self.fields()]
        fields = frozenset(line.removeprefix("self.") for line in lines)
        stored = frozenset(self.part.tensors.values())
        return Body(trace, lambda constant: named.get(constant, ""), fields, stored)

    def bodies(self) -> tuple[Body, Body]:
        """Return the bodies as traced, and with rerolled loops."""
        return self.body(self.traced()), self.body(self.rolled)

    def modules(self) -> dict[Path, str]:
        """Return the source of every module in the class by path, in order of use."""
        entries: dict[Path, str] = {}
        for item in self.part.items:
            for call in calls_of(item):
                part = call.part
                class_call = self.families.call(part.class_name)
                entries[call.path] = (
                    sequence_text(part) if part.sequence else class_call
                )
            if isinstance(item, Node):
                for node in nested_nodes(item):
                    path = self.part.layer_paths.get(id(node))
                    if path is not None and path in self.trace.layers:
                        entries[path] = layer_text(self.trace.layers[path])
        entries.update((p, layer_text(layer)) for p, layer in self.part.kept.items())
        # The attribute is in a submodule.
        return {p: t for p, t in entries.items() if not _is_inside(p, entries)}

    def write(
        self, parameters: list[str], outputs: list[str], wrap: str, doc: str
    ) -> ClassText:
        """Return the class text; ``wrap`` names the tuple of several results."""
        # The root is never merged.
        plain = self.plain() if self.part.path else []
        writer = self.writer(self.trace, parameters, outputs, wrap, self.submodules)
        body = writer.write()
        used = Namespace(self.stored.names.names | MEMBERS)
        methods = [
            self.method(method)
            for method in split_into_methods(self.trace, len(body), used)
        ]
        modules = writer.render.modules
        if methods:
            writer = self.writer(self.trace, parameters, outputs, wrap, self.submodules)
            body = writer.write()
        body = self.defaults(parameters) + body
        kinds = [python_type(self.graph.type(name)) for name in self.part.outputs]
        result = wrap or f"tuple[{', '.join(kinds)}]"
        is_tuple = len(kinds) != 1
        fields = outputs or result_names(self.part, self.nouns)
        return ClassText(
            self.part.class_name,
            doc,
            self.fields(),
            self.signature(parameters),
            result if is_tuple else kinds[0],
            body,
            not self.part.path,
            modules | self.imported(),
            plain=[", ".join(kinds), *plain],
            methods=methods,
            record_names={one.name: one.record_name for one in self.siblings},
            result_fields=list(zip(fields, kinds, strict=True)) if is_tuple else [],
            returned_module=self.returned_module(writer),
        )

    def returned_module(self, writer: FunctionWriter) -> ModuleNode | None:
        """Return the submodule whose several results the body returns unchanged."""
        call = writer.returned_call
        return self.submodules.get(call.path) if isinstance(call, ModuleCall) else None

    def writer(
        self,
        trace: FunctionTrace,
        parameters: list[str],
        outputs: Sequence[str] = (),
        wrap: str = "",
        submodules: Collection[Path] | None = None,
    ) -> FunctionWriter:
        """Return a writer for ``trace``, a function of this class."""
        access, renderer = self.containers.access, self.target.renderer
        read = (self.attribute, access, self.nouns)
        return FunctionWriter(
            trace, parameters, *read, outputs, wrap, renderer, submodules
        )

    def method(self, method: Method) -> MethodText:
        """Return one piece of the body as a method."""
        parameters, results = method.trace.parameters, method.trace.body.results
        names = names_of_nouns(
            [self.nouns.get(symbol.name, "") for symbol in parameters]
        )
        kinds = [python_type(symbol.type) for symbol in parameters]
        pairs = zip(names, kinds, strict=True)
        signature = "".join(f", {name}: {kind}" for name, kind in pairs)
        types = [python_type(result.data.type) for result in results]
        result = types[0] if len(types) == 1 else f"tuple[{', '.join(types)}]"
        body = self.writer(method.trace, names).write()
        return MethodText(method.name, signature, result, body)

    def plain(self) -> list[str]:
        """Return the body as written without the file's value names."""
        kinds = [python_type(each.type) for each in self.trace.parameters]
        parameters = [f"p{number}" for number in range(len(kinds))]
        read = (self.attribute, self.containers.access)
        renderer = self.target.renderer
        writer = FunctionWriter(self.trace, parameters, *read, renderer=renderer)
        return [", ".join(kinds), *writer.write()]

    def imported(self) -> set[str]:
        """Return the library modules that the source of the fields reads."""
        sources = [
            *self.containers.entries.values(),
            *map(self.default, self.optional.values()),
        ]
        modules = ("ops", "math", "burn")
        return {name for name in modules for t in sources if f"{name}." in t}

    def attribute(self, constant: str) -> str:
        """Return the attribute path of a stored array that the code reads itself."""
        return self.stored.access(constant)

    @property
    def optional(self) -> Mapping[str, str]:
        """Return the optional inputs with their default arrays.

        Only the root has them: submodules always get a value.
        """
        return {} if self.part.path else self.graph.defaults

    def signature(self, parameters: list[str]) -> str:
        """Return the parameters of ``__call__`` after ``self``."""
        kinds = [python_type(each.type) for each in self.trace.parameters]
        shown = [
            f"{name}: {kind} | None = None" if optional else f"{name}: {kind}"
            for name, kind, optional in zip(
                parameters, kinds, self.may_lack(), strict=True
            )
        ]
        return "".join(f", {text}" for text in shown)

    def may_lack(self) -> list[bool]:
        """Return for each parameter whether it may be None."""
        if self.family is not None:
            return [None in places for places in self.family.union.parameters]
        return [value in self.optional for value in self.part.inputs]

    def defaults(self, parameters: list[str]) -> list[str]:
        """Return the lines that replace omitted inputs by their defaults."""
        lines: list[str] = []
        for name, value in zip(parameters, self.part.inputs, strict=False):
            if value in self.optional:
                lines += [
                    f"        if {name} is None:",
                    f"            {name} = {self.default(self.optional[value])}",
                ]
        return lines

    def default(self, constant: str) -> str:
        """Return the default of an optional input: a stored array, or one integer."""
        if self.is_stored(constant):
            return self.target.renderer.stored_value(f"self.{self.attribute(constant)}")
        array = self.graph.constants[constant]
        return self.target.renderer.one_number(array.shape, array.item())

    def is_stored(self, constant: str) -> bool:
        """Return whether a default is an attribute, not a literal integer."""
        array = self.graph.constants[constant]
        return bool(array.dtype != np.int64 or array.size != 1)

    def fields(self) -> list[str]:
        """Return the assignments of ``__init__``: modules, then stored arrays."""
        return self.containers.fields() + self.stored.fields()


def _is_inside(path: Path, entries: Mapping[Path, str]) -> bool:
    return any(path[:length] in entries for length in range(1, len(path)))
