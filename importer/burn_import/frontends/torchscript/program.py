"""From an archive to a graph: its ``forward`` is interpreted symbolically."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from burn_import.frontends.torch_export.builder import Nodes, Value, literal_node
from burn_import.frontends.torch_export.changed_parameters import (
    with_parameter_gradients,
)
from burn_import.frontends.torch_export.complex_as_real import stored_type
from burn_import.frontends.torchscript.archive import Archive, Budget, Pool
from burn_import.frontends.torchscript.inputs import NumberInput
from burn_import.frontends.torchscript.modules import Attributes, is_counter, is_plain
from burn_import.frontends.torchscript.node_writer import have_equal_nodes
from burn_import.frontends.torchscript.primitives import Raised
from burn_import.frontends.torchscript.source_code import Code, Function
from burn_import.frontends.torchscript.statements import Statements
from burn_import.frontends.torchscript.values import (
    Module,
    PyValue,
    Rows,
    TensorRef,
    Without,
    describe,
)
from burn_ir import InvalidModel, ModelError, UnsupportedModel
from burn_ir.dim import counting_unnamed
from burn_ir.error_context import FAULTS, error_text
from burn_ir.graph_builder import Origin
from burn_ir.order import node_reads
from burn_ir.raw import RawGraph
from burn_ir.types import Type


class _Run(NamedTuple):
    """One interpretation of a program.

    ``changing`` are the tensors of the archive that a call changes, ``varying`` those
    that were expected to differ from call to call.
    """

    machine: Statements
    inputs: dict[str, Type]
    outputs: tuple[str, ...]
    varying: frozenset[str]
    changing: frozenset[str]


class Program:
    """The program of an archive.

    ``parameters`` are those of ``forward`` without the module. ``reached`` is the
    number of statements interpreted last time before the first error; ``contradicts``
    is whether operands did not fit their operators.
    """

    def __init__(self, archive: Archive, *, restores_dropout: bool = False) -> None:
        self.archive = archive
        self.restores_dropout = restores_dropout
        #: Notes on omissions of the last graph.
        self.notes: tuple[str, ...] = ()
        self.code = Code(archive.files)
        self.forward: Function = self.code.method(archive.root.kind.path, "forward")
        self.parameters = self.forward.node.args.args[1:]
        self.pool = Pool()
        self.reached = 0
        self.contradicts = False

    def graph(self, arguments: Mapping[str, Any]) -> RawGraph:
        """Return the graph for arguments by name: types of tensors, or values.

        Raises:
            UnsupportedModel: the code uses unsupported features; all are listed.
            InvalidModel: the code contradicts itself, or the types.
        """
        run = self._run(arguments, frozenset())
        while not run.changing <= run.varying:
            # A number that was read from such a tensor is another one in later calls.
            run = self._run(arguments, run.varying | run.changing)
        self._check_attributes(arguments, run)
        machine, inputs, outputs = run.machine, run.inputs, run.outputs
        if not outputs:
            raise UnsupportedModel("expected forward to return tensors, got none")
        nodes = machine.writer.nodes
        self.notes = nodes.notes
        changed = _without_unread_counters(machine.modules.replaced(), nodes, outputs)
        states = {name: nodes.constants.pop(name) for name in changed}
        # A frozen archive lists no parameters: its weights are constants of the code. A
        # scalar constant of the code is a literal in any archive.
        trained = machine.modules.trained if machine.modules.parameters else {}
        lifted = [
            name
            for name, array in nodes.constants.items()
            if name not in machine.modules.trained and (trained or array.ndim == 0)
        ]
        constants = [literal_node(name, nodes.constants.pop(name)) for name in lifted]
        inputs.update((name, Type.of(states[name]).forget()) for name in states)
        graph = RawGraph(
            "main",
            inputs,
            (*outputs, *changed.values()),
            (*constants, *nodes.nodes),
            nodes.constants,
            states=states,
            trained=trained,
        )
        return with_parameter_gradients(graph)

    def _run(
        self,
        arguments: Mapping[str, Any],
        varying: frozenset[str],
        attributes: Attributes | None = None,
    ) -> _Run:
        """Return the interpreted program.

        ``varying`` are tensors of the archive, and ``attributes`` those that an earlier
        call left in attributes.
        """
        with counting_unnamed():
            machine = Statements(self.archive, self.code, varying)
            machine.modules.assigned.update(attributes or {})
            machine.writer.nodes.restores_dropout = self.restores_dropout
            machine.writer.budget = Budget(
                self.archive.words, machine.modules.count, self.pool
            )
            inputs: dict[str, Type] = {}
            args = {
                name: _argument_value(machine, name, of, inputs)
                for name, of in arguments.items()
            }
            result = self.followed(machine, args)
            outputs = tuple(_outputs(machine, result))
            sources = machine.modules.sources
            changing = frozenset(sources[name] for name in machine.modules.replaced())
            if machine.modules.parameters:
                machine.modules.store_unread()
        return _Run(machine, inputs, outputs, varying, changing)

    def _check_attributes(self, arguments: Mapping[str, Any], run: _Run) -> None:
        """Return if numbers that a call leaves in attributes do not matter to the next.

        Raises:
            UnsupportedModel: they do, and a generated module has no such attributes.
        """
        left = run.machine.modules.left_in_attributes()
        if not left:
            return
        if all(is_plain(value) for value in left.values()):
            later = self._run(arguments, run.varying, left)
            if run.outputs == later.outputs and have_equal_nodes(
                run.machine.writer.nodes, later.machine.writer.nodes
            ):
                return
        _, name = next(iter(left))
        raise UnsupportedModel(
            f"the attribute {name!r}, which a call changes for the next call: "
            "expected a buffer (register_buffer), or an input and an output"
        )

    def followed(self, machine: Statements, args: dict[str, PyValue]) -> PyValue:
        """Return the result of ``forward``.

        Raises:
            ModelError: lists all errors.
        """
        module = Module(self.archive.root)
        reason, result = "", None
        try:
            result = machine.enter(self.forward, module, [module], args)
        except Raised as error:
            reason = f"the program raises an error: {error}"
        except ModelError:
            raise
        except FAULTS as error:  # of default arguments, which belong to no statement
            raise InvalidModel(error_text(error)) from error
        finally:
            self.reached = machine.count if machine.sound is None else machine.sound
            self.contradicts = InvalidModel in machine.problems
        for kind in (UnsupportedModel, InvalidModel):
            if machine.problems.get(kind):
                raise kind([p for of in machine.problems.values() for p in of])
        if reason:
            raise UnsupportedModel(reason)
        return result


def _without_unread_counters(
    changed: dict[str, str], nodes: Nodes, outputs: Sequence[str]
) -> dict[str, str]:
    """Return the changed tensors but counts of batches that nothing else reads.

    ``changed`` has the names of new values by those of stored tensors.
    """
    others = {name: after for name, after in changed.items() if not is_counter(name)}
    needed = {*outputs, *others.values()}
    for node in reversed(nodes.nodes):
        if needed.intersection(node.outputs):
            needed.update(node_reads(node))
    return {n: after for n, after in changed.items() if n in others or n in needed}


def _argument_value(
    machine: Statements, name: str, of: Any, inputs: dict[str, Type]
) -> PyValue:
    """Return an argument as an interpreter value; tensors become graph inputs."""
    if isinstance(of, Type):
        value = machine.writer.input(name, of)
        inputs[value.name] = stored_type(of.dtype, of.shape)
        return TensorRef(value)
    if isinstance(of, NumberInput):
        number = machine.writer.input(name, Type(of.dtype, ()))
        inputs[number.name] = Type(of.dtype, ())
        return replace(number, is_number=True)
    if isinstance(of, tuple | list):
        parts = [
            _argument_value(machine, f"{name}_{index}", item, inputs)
            for index, item in enumerate(of)
        ]
        return type(of)(parts)
    if isinstance(of, dict):
        return {
            key: _argument_value(machine, f"{name}_{key}", item, inputs)
            for key, item in of.items()
        }
    return of


def _outputs(
    machine: Statements, obj: PyValue, path: tuple[Any, ...] = ()
) -> Iterator[str]:
    """Yield the names of the tensors and numbers that ``forward`` returns, in order.

    Items of a dict are named by their keys.

    Raises:
        InvalidModel: it returns something else.
    """
    machine.budget.step()
    if isinstance(obj, dict | list | tuple) and len(path) < _DEEPEST:
        items = obj.items() if isinstance(obj, dict) else enumerate(obj)
        for key, item in items:
            yield from _outputs(machine, item, (*path, key))
    elif isinstance(obj, TensorRef | Value | bool | int | float):
        name = "_".join(map(str, path)) if any(map(_is_text, path)) else ""
        value = machine.tensor(obj, Origin(name or "result")).value
        yield machine.writer.same(value, name) if name else value.name
    elif isinstance(obj, Without | Rows):
        raise UnsupportedModel(f"forward returns {describe(obj)}")
    elif obj is not None:
        got = describe(obj)
        raise InvalidModel(f"expected forward to return tensors, got {got}")


def _is_text(key: Any) -> bool:
    return isinstance(key, str)


#: Largest nesting depth of containers.
_DEEPEST = 64
