"""Names of a function's values: model-specific nouns, else generic words."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from burn.primitive import Primitive
from burn_import.codegen.naming.input_roles import input_roles
from burn_import.codegen.naming.short_names import short_names
from burn_import.codegen.naming.value_names import infer_value_names
from burn_import.codegen.printing.consumer_words import specific_name
from burn_import.codegen.printing.name_candidates import STREAMS, result_word
from burn_import.codegen.trace.primitive_parameters import parameters
from burn_import.provenance.exporter_names import (
    custom_identifier,
    is_leftover,
    is_stream,
)
from burn_import.structure import ModuleNode, SubmoduleCall, Tree
from burn_import.structure.module_tree import IfCall
from burn_import.tracing.identifiers import Namespace, argument, identifier, snake
from burn_import.tracing.statements import symbols_in
from burn_import.tracing.trace import Apply, Block, blocks_of
from burn_ir.graph import Graph, nested_nodes

#: Roles of stored operands by primitive.
CONSTANT_ROLES = {
    "matmul": "weight",
    "linear": "weight",
    "add": "bias",
    "sub": "offset",
    "mul": "scale",
    "div": "scale",
    "take": "table",
    "embedding": "table",
    "where": "fill",
}
#: Roles of the stored operands of recurrent layers, in order.
_RECURRENT = {
    "lstm": ("x", "weight_ih", "weight_hh", "bias", "h0", "c0", "lengths", "peephole"),
    "gru": ("x", "weight_ih", "weight_hh", "bias", "h0", "lengths"),
    "rnn": ("x", "weight_ih", "weight_hh", "bias", "h0", "lengths"),
}
#: Roles of stored operands by primitive and position.
POSITION_ROLES = {
    ("dequantize", 0): "quantized",
    ("quantized_matmul", 0): "weight",
    ("quantized_matmul", 3): "weight",
    ("integer_matmul", 0): "weight",
    ("integer_matmul", 1): "weight",
    ("gather_nd", 0): "table",
    ("take", 1): "indices",
    ("embedding", 1): "indices",
    ("concat", 0): "prefix",
}
#: Prefix of model inputs that only a decoder reads.
DECODER = "decoder_"
_NUMBER = re.compile(r"_?\d+(?=_|$)")

#: The index of a merged class's parameter in each member.
Places = Sequence[int | None]


def constant_roles(block: Block) -> dict[str, str]:
    """Return the role of stored arrays, from the first primitive reading each."""
    roles: dict[str, str] = {}
    for statement in block.statements:
        if isinstance(statement, Apply):
            for position, arg in enumerate(statement.args):
                word = _constant_role(statement.primitive, position)
                word = word if word != "prefix" or _is_first(arg) else "suffix"
                _note_role(roles, arg, word)
            for keyword, arg in statement.static.items():
                _note_role(roles, arg, keyword)
        for inner in blocks_of(statement):
            roles = {**constant_roles(inner), **roles}
    return roles


def _note_role(roles: dict[str, str], operand: Any, word: str) -> None:
    """Assign ``word`` to the stored arrays in ``operand`` without a role."""
    for symbol in symbols_in(operand):
        if symbol.constant:
            roles.setdefault(symbol.constant, word)


def _is_first(operand: Any) -> bool:
    """Return whether a list of operands begins with a stored array."""
    items = operand if isinstance(operand, list | tuple) else ()
    return any(symbol.constant for symbol in symbols_in(items[:1]))


def _constant_role(primitive: Primitive[..., Any], position: int) -> str:
    """Return the role of a stored operand, from primitive and parameter."""
    if primitive.name in _RECURRENT:
        return _RECURRENT[primitive.name][position]
    role = CONSTANT_ROLES.get(primitive.name, "")
    role = POSITION_ROLES.get((primitive.name, position), role)
    names = [parameter.name for parameter in parameters(primitive)]
    own = names[min(position, len(names) - 1)] if names else ""
    return role or specific_name(own) or "constant"


class Nouns:
    """Value names in the class of each module of a tree."""

    def __init__(self, tree: Tree) -> None:
        graph = tree.root.graph
        self.values = infer_value_names(tree)
        self.tree = tree
        #: Names of the model's results.
        self.outputs = output_names(graph, heads(tree.root) | self.values)
        for name, noun in zip(graph.results, self.outputs, strict=True):
            if not (name in graph.arguments or is_leftover(noun) or is_stream(noun)):
                self.values[name] = noun
        self.instances: dict[int, list[ModuleNode]] = {}
        for part in tree.parts:
            self.instances.setdefault(id(tree.model[id(part)]), []).append(part)
        self.by_part: dict[int, dict[str, str]] = {}

    def inside(self, part: ModuleNode) -> dict[str, str]:
        """Return the nouns in the class of ``part``.

        All instances must agree on a noun. A number is dropped if it is not
        needed: ``past_key_0`` becomes ``past_key``.
        """
        if id(part) not in self.by_part:
            self.by_part[id(part)] = self._agreed_nouns(part)
        return self.by_part[id(part)]

    def shared(
        self, members: Sequence[ModuleNode], places: Sequence[Places]
    ) -> list[str]:
        """Return the nouns of the parameters of a class that merges ``members``.

        ``places`` has the index of each parameter in each member, None where a
        member lacks it. The noun is "" if the members disagree.
        """
        agreed = []
        for row in places:
            words, duties = [], set()
            for part, position in zip(members, row, strict=True):
                if position is not None:
                    name = part.inputs[position]
                    words.append(self.inside(part).get(name, ""))
                    duties.add(input_roles(part).get(name, ""))
            ends = {word.rpartition("_")[2] for word in words}
            duty = max(duties - {""}, default="")
            agreed.append(
                common_noun(words) or duty or (ends.pop() if len(ends) == 1 else "")
            )
        names = Namespace()
        return [name and names.unique(name) for name in agreed]

    def within(self, part: ModuleNode, parameters: Sequence[str]) -> dict[str, str]:
        """Return the nouns in a merged class whose parameters have these nouns."""
        part_nouns = self.inside(part)
        foreign = {part_nouns[n] for n in part.inputs if n in part_nouns} - set(
            parameters
        )
        return {name: noun for name, noun in part_nouns.items() if noun not in foreign}

    def _agreed_nouns(self, part: ModuleNode) -> dict[str, str]:
        columns = zip(*map(_slots, self.instances[id(part)]), strict=True)
        nouns = {
            column[0]: agreed
            for column in columns
            if (agreed := common_noun([self.values.get(name, "") for name in column]))
            and not (part.path and is_stream(agreed))
        }
        ends = {*part.inputs, *part.outputs}
        crowd = Counter(plain(nouns[name]) for name in ends if name in nouns)
        short = {
            name: plain(noun)
            for name, noun in nouns.items()
            if name not in ends or (part.path and crowd[plain(noun)] == 1)
        }
        names = nouns | short | self._stored(part)
        return short_names(part, _within_decoder(names)) if part.path else names

    def _stored(self, part: ModuleNode) -> dict[str, str]:
        """Return the nouns of the stored arrays that a module reads itself."""
        names = [name for node in part.nodes() for name in node.inputs]
        stored = part.graph.constants
        return {n: self.values[n] for n in names if n in stored and n in self.values}


def _within_decoder(nouns: dict[str, str]) -> dict[str, str]:
    """Return ``nouns`` without the prefix ``decoder_`` where it is unique."""
    used = set(nouns.values())
    shorter = {
        noun: noun.removeprefix(DECODER)
        for noun in used
        if noun.startswith(DECODER) and noun.removeprefix(DECODER) not in used
    }
    return {name: shorter.get(noun, noun) for name, noun in nouns.items()}


def common_noun(nouns: Sequence[str]) -> str:
    """Return the common noun without numbers; "" if the nouns differ."""
    if len(set(nouns)) == 1:
        return nouns[0]
    stems = {plain(noun) for noun in nouns}
    return stems.pop() if len(stems) == 1 else ""


def plain(noun: str) -> str:
    """Return ``noun`` without counting numbers: ``past_key_0`` is ``past_key``."""
    stem = _NUMBER.sub("", noun)
    stem = re.sub(r"^past_key_values_(?=.)", "past_", stem)
    return stem if len(stem) > 2 and stem == identifier(stem) else noun


def _slots(part: ModuleNode) -> list[str]:
    """Return a module's inputs and results, in an order that equal modules share."""
    return list(dict.fromkeys(_names(part)))


def _names(part: ModuleNode) -> Iterator[str]:
    yield from part.inputs
    for item in part.items:
        if isinstance(item, SubmoduleCall):
            yield from item.outputs
            continue
        for node in nested_nodes(item.node if isinstance(item, IfCall) else item):
            yield from (name for name in node.outputs if name is not None)
            for body in node.op.bodies().values():
                yield from body.inputs


def parameter_names(part: ModuleNode, nouns: dict[str, str]) -> list[str]:
    """Return the names of the parameters of ``__call__``.

    Those of the model have the file's names. Others are named by noun, then by
    role; the rest are ``x`` for the main data flow, then ``y``.
    """
    names = Namespace()
    if not part.path:
        return [names.unique(argument(name)) for name in part.inputs]
    words = input_roles(part)
    return names_of_nouns(
        [nouns.get(name) or words.get(name, "") for name in part.inputs]
    )


def names_of_nouns(nouns: Sequence[str]) -> list[str]:
    """Return parameter names for ``nouns``; those without one are ``x``, then ``y``."""
    names = Namespace()
    streams = iter(STREAMS)
    return [names.unique(noun or next(streams, STREAMS[1])) for noun in nouns]


def result_names(part: ModuleNode, nouns: Mapping[str, str]) -> list[str]:
    """Return the field names of the NamedTuple that a submodule returns.

    Results without nouns are numbered: ``hidden_state_0``, ``hidden_state_1``.
    """
    names, numbers = Namespace(dir(tuple)), Counter[str]()
    words = [
        nouns.get(name) or result_word(part.graph.type(name)) for name in part.outputs
    ]
    counts = Counter(words)
    fields = []
    for word in words:
        field = f"{word}_{numbers[word]}" if counts[word] > 1 else word
        numbers[word] += 1
        fields.append(names.unique(field))
    return fields


def heads(root: ModuleNode) -> dict[str, str]:
    """Return the attributes of the layers and modules that compute several outputs.

    ``NetOutput(mu, logvar)`` of ``self.mu`` and ``self.logvar`` needs no other names.
    """
    if len(root.outputs) < 2:
        return {}
    words: dict[str, str] = {}
    for item in root.items:
        if isinstance(item, IfCall) or len(item.outputs) != 1:
            continue
        inner = root.layer_paths.get(id(item), ())
        path = item.path if isinstance(item, SubmoduleCall) else inner
        word = argument(path[0]) if len(path) == 1 else ""
        is_name = len(word) > 1 and not is_leftover(word)
        words[item.outputs[0] or ""] = word if is_name else ""
    counts = Counter(words.values())
    return {name: word for name, word in words.items() if word and counts[word] == 1}


def output_names(graph: Graph, nouns: Mapping[str, str]) -> list[str]:
    """Return the field names of the output NamedTuple, from the file or nouns.

    Outputs with generated names and equal nouns are numbered.
    """
    own = [custom_identifier(name) and snake(name, "output") for name in graph.results]
    inputs = {argument(name) for name in graph.arguments}
    candidates = []
    for name, author_name in zip(graph.results, own, strict=True):
        noun = nouns.get(name, "")
        candidates.append(
            plain(author_name) if author_name else "" if noun in inputs else noun
        )
    groups: dict[str, list[str]] = {}
    for author_name, noun in zip(own, candidates, strict=True):
        groups.setdefault(noun, []).append(author_name)
    names, numbers = Namespace(), Counter[str]()
    result = []
    for position, (author_name, noun) in enumerate(zip(own, candidates, strict=True)):
        if noun and not _has_consecutive_numbers(groups[noun]):
            result.append(names.unique(f"{noun}_{numbers[noun]}"))
            numbers[noun] += 1
        else:
            result.append(
                names.unique(author_name or noun or _numbered_name(graph, position))
            )
    return result


def _numbered_name(graph: Graph, position: int) -> str:
    """Return an operator name from the file, with the output index as its number."""
    word = snake(graph.results[position].rpartition("/")[2], "output")
    if not re.search(r"\d", word):
        return word
    return "output" if len(graph.results) == 1 else f"output_{position}"


def _has_consecutive_numbers(group: list[str]) -> bool:
    """Return whether the author's numbers are consecutive indices from 0 or 1."""
    numbers = [int(word) for name in group for word in re.findall(r"\d+$", name)]
    in_turn = numbers and numbers == list(range(numbers[0], numbers[0] + len(group)))
    return len(group) == 1 or (bool(in_turn) and numbers[0] < 2)
