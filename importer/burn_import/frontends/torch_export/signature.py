"""From a program to a graph: inputs, stored tensors, outputs, and calls."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from burn.dtypes import DType
from burn.record.errors import shown
from burn_import.frontends.torch_export.builder import (
    BOOL,
    FLOAT32,
    INT64,
    Builder,
    Nodes,
    Value,
    literal_node,
)
from burn_import.frontends.torch_export.changed_parameters import (
    with_parameter_gradients,
)
from burn_import.frontends.torch_export.complex_as_real import stored_array, stored_type
from burn_import.frontends.torch_export.program import Calls
from burn_import.frontends.torch_export.pytrees import leaf_names
from burn_import.frontends.torch_export.schema import (
    Argument,
    SymbolRef,
    TensorRef,
    argument,
    field,
    union,
)
from burn_import.frontends.torch_export.symbolic_extents import named_symbols
from burn_import.frontends.torch_export.value_table import Frame
from burn_import.frontends.torch_export.weights import StoredTensors
from burn_ir import InvalidModel, UnsupportedModel
from burn_ir.raw import RawGraph, RawNode
from burn_ir.types import Type


class Program(Calls):
    """The program in the JSON of an archive.

    ``stored`` provides its tensors.
    """

    def __init__(
        self, content: Any, stored: StoredTensors, *, restores_dropout: bool = False
    ) -> None:
        super().__init__()
        self.restores_dropout = restores_dropout
        #: Notes on omissions of the graph.
        self.notes: tuple[str, ...] = ()
        self.module = content["graph_module"]
        self.stored = stored
        #: Stored tensors by path: their names in the program and in the graph.
        self.names_by_path: dict[str, tuple[str, str]] = {}
        #: Whether a stored tensor is a parameter, by its name in the graph.
        self.trained: dict[str, bool] = {}
        #: The non-persistent buffers, which are in no ``state_dict``.
        self.transient: set[str] = set()

    def graph(self) -> RawGraph:
        """Return the main graph, including all subgraphs.

        Raises:
            ModelError: calls are unsupported or contradict the schema; lists all of
                them.
        """
        content = self.module["graph"]
        frame = Frame(content, Nodes(restores_dropout=self.restores_dropout))
        signature = self.module["signature"]
        inputs = self.inputs(frame, signature["input_specs"])
        names = self.output_names(frame, signature["output_specs"])
        self.run(content, frame)
        self.notes = frame.out.notes
        outputs = self.outputs(frame, signature["output_specs"], names)
        changed = self.changed(frame)
        states = {name: frame.out.constants.pop(name) for name in changed}
        constants = frame.out.constants
        lifted = [name for name in constants if name not in self.trained]
        nodes = [literal_node(name, constants.pop(name)) for name in lifted]
        inputs.update((name, Type.of(states[name]).forget()) for name in states)
        for kind in (InvalidModel, UnsupportedModel):
            if self.problems.get(kind):
                raise kind([p for problems in self.problems.values() for p in problems])
        graph = RawGraph(
            "main",
            inputs,
            (*outputs, *changed.values()),
            (*nodes, *frame.out.nodes),
            constants,
            states=states,
            trained=self.trained,
            transient=frozenset(self.transient),
        )
        return with_parameter_gradients(graph)

    def leaves(self, spec: str, count: int, kind: str) -> list[str]:
        """Return the leaf names of inputs or outputs; "" if there are none."""
        calls = self.module.get("module_call_graph") or ()
        texts = [(c.get("signature") or {}).get(spec) for c in calls if not c["fqn"]]
        if not texts or texts[0] is None:
            return [""] * count
        fields = self.module.get("treespec_namedtuple_fields") or {}
        leaves = leaf_names(texts[0], fields)
        if len(leaves) != count:
            raise InvalidModel(f"expected {len(leaves)} {kind}, got {count}")
        return leaves

    def output_names(self, frame: Frame, specs: Sequence[Any]) -> list[str]:
        """Return the author's names of outputs, "" for those without a name."""
        count = sum(union(spec)[0] in _RETURNED for spec in specs)
        names = self.leaves("out_spec", count, "outputs")
        return [name and frame.out.unique(name) for name in names]

    def inputs(self, frame: Frame, specs: Sequence[Any]) -> dict[str, Type]:
        """Return the types of the user's inputs; weights become constants."""
        user_inputs: list[str] = []
        for spec in specs:
            kind, body = union(spec)
            if kind == "user_input":
                arg = argument(body.get("arg"))
                if isinstance(arg, TensorRef):
                    user_inputs.append(arg.name)
                elif isinstance(arg, SymbolRef):
                    raise UnsupportedModel(
                        f"input {shown(arg.name)}: expected a tensor, got a number "
                        "that varies; export with a fixed one"
                    )
            elif kind in _STORED:
                self.store(frame, kind, body)
            elif kind == "token":
                token = field(field(body, "arg", dict), "name", str)
                frame.values[token] = Value(token, BOOL, ())
            elif kind != "constant_input":
                raise UnsupportedModel(f"inputs of kind {shown(kind)} are not read")
        count = sum(union(spec)[0] in _GIVEN for spec in specs)
        self.leaves("in_spec", count, "inputs")
        tensors = frame.meta["tensor_values"]
        sizes = {
            name: tensors[name]["sizes"] for name in user_inputs if name in tensors
        }
        named_symbols(self.symbols, sizes)
        types = {}
        for name in user_inputs:
            value = self.typed(frame, name)
            unique = frame.out.unique(name)
            frame.values[name] = replace(value, name=unique)
            types[unique] = stored_type(value.dtype, value.dims)
        return types

    def store(self, frame: Frame, kind: str, body: Any) -> None:
        name = field(field(body, "arg", dict), "name", str)
        path = field(body, _STORED[kind], str)
        array = self.stored.tensor(path).array()
        value = self.typed(frame, name)
        if (array.dtype, array.shape) != (value.dtype, value.dims):
            raise InvalidModel(
                f"tensor {shown(path)}: expected {value.dtype}{list(value.dims or ())},"
                f" got {array.dtype}{list(array.shape)}"
            )
        unique = frame.out.store(path, stored_array(array))
        frame.values[name] = replace(value, name=unique)
        self.names_by_path[path] = (name, unique)
        if kind in ("parameter", "buffer"):
            self.trained[unique] = kind == "parameter"
        if kind == "buffer" and body.get("persistent") is False:
            self.transient.add(unique)

    def outputs(
        self, frame: Frame, specs: Sequence[Any], names: Sequence[str]
    ) -> tuple[str, ...]:
        """Return the names of the user's outputs; update stored tensors."""
        results, called = [], iter(names)
        stored: dict[str, Value] = {}
        for spec in specs:
            kind, body = union(spec)
            if kind == "user_output":
                results += self.result(frame, argument(body.get("arg")), next(called))
            elif kind == "loss_output":
                results += self.result(frame, _tensor(body), next(called))
            elif kind in _GRADIENTS:
                name = frame.out.unique(f"{field(body, _GRADIENTS[kind], str)}.grad")
                results += self.result(frame, _tensor(body), name)
            elif kind in _MUTATED:
                result = _tensor(body).name
                path = field(body, _MUTATED[kind], str)
                if path not in self.names_by_path:
                    raise InvalidModel(f"expected a tensor {shown(path)}, found none")
                stored[self.names_by_path[path][0]] = frame.value(result)
            elif kind not in ("token", "user_input_mutation"):
                raise UnsupportedModel(f"outputs of kind {shown(kind)} are not read")
        frame.values.update(stored)
        return tuple(results)

    def result(self, frame: Frame, arg: Argument, name: str) -> list[str]:
        """Return the name of an output, numbers as tensors; [] for others."""
        if isinstance(arg, TensorRef | SymbolRef):
            output = self.output(frame, arg.name)
        elif isinstance(arg, bool | int | float):
            name = name or frame.out.unique("number")
            output = Builder(frame.out, name, []).constant(arg, _kind(arg)).name
        else:
            return []
        if not name or self.problems:
            return [output]
        frame.out.nodes.append(RawNode("Identity", "", {}, (output,), (name,), name))
        return [name]

    def output(self, frame: Frame, name: str) -> str:
        """Return the name of the output ``name``; collect its errors."""
        try:
            return frame.value(name).name
        except UnsupportedModel as error:
            self.note(UnsupportedModel, error, "", "")
        except InvalidModel as error:
            if not self.problems:  # else it may be missing because of them
                self.note(InvalidModel, error, "", "")
        return name

    def changed(self, frame: Frame) -> dict[str, str]:
        """Return the stored tensors that a call replaces, and their new values."""
        pairs = {
            unique: self.output(frame, name)
            for path, (name, unique) in self.names_by_path.items()
            if path.rpartition(".")[2] != COUNTER
        }
        return {unique: after for unique, after in pairs.items() if after != unique}


#: The number of training batches of a batch norm, which no result depends on.
COUNTER = "num_batches_tracked"
#: Kinds of inputs that are stored tensors, and the field with their path.
_STORED = {
    "parameter": "parameter_name",
    "buffer": "buffer_name",
    "tensor_constant": "tensor_constant_name",
}
#: Kinds of outputs that update stored tensors, and the field with their path.
_MUTATED = {"buffer_mutation": "buffer_name", "parameter_mutation": "parameter_name"}
#: Kinds of outputs that the user receives.
_RETURNED = frozenset({"user_output", "loss_output"})
#: Kinds of outputs that are gradients, and the field with their parameter or input.
_GRADIENTS = {
    "gradient_to_parameter": "parameter_name",
    "gradient_to_user_input": "user_input_name",
}
#: Kinds of inputs that the user passes.
_GIVEN = frozenset({"user_input", "constant_input"})


def _tensor(body: Any) -> TensorRef:
    """Return the tensor of an output that must be one."""
    return TensorRef(field(field(body, "arg", dict), "name", str))


def _kind(number: float) -> DType:
    """Return the dtype of the tensor of a Python number."""
    if isinstance(number, bool):
        return BOOL
    return INT64 if isinstance(number, int) else FLOAT32
