"""Stored arrays that a class reads itself, as attributes of the class."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from burn.dtypes import float32, is_float
from burn_import.codegen.containers.containers import Containers
from burn_import.provenance.exporter_folding import is_folded
from burn_import.provenance.exporter_names import is_leftover
from burn_import.provenance.path_segments import Path, clean
from burn_import.provenance.trainable import contents, is_trained
from burn_import.provenance.weight_owners import (
    folded_floats,
    is_key,
    is_lifted,
    is_parameter_of_paddle,
    moved_to_sibling,
    original,
)
from burn_import.rewriting.arrays import same_view
from burn_import.structure.folded_expressions import is_persistent
from burn_import.structure.module_tree import ModuleNode
from burn_import.structure.wrappers import without_prefix
from burn_import.tracing.identifiers import Namespace, attribute, dtype_source, snake
from burn_ir.graph import Graph


class StoredArrays:
    """The array attributes of one class, by the constants they store.

    An array with a path in the file has that path here, so that its key is the one
    in PyTorch; other arrays are named after their use.
    """

    def __init__(
        self,
        part: ModuleNode,
        containers: Containers,
        nouns: Mapping[str, str],
        settled_attributes: Mapping[str, str] | None = None,
    ) -> None:
        """``settled_attributes`` are attributes by array, where they are known."""
        self.settled_attributes = settled_attributes or {}
        self.part, self.graph = part, part.graph
        self.containers, self.nouns = containers, nouns
        #: The role of each array, set after loops are rerolled.
        self.roles: Mapping[str, str] = {}
        self.names = Namespace(path[0] for path in containers.entries)
        self.weights = part.layer_weights()
        self.paths: dict[str, Path] = {}
        self.plain: dict[str, str] = {}
        self.plain_names: set[str] = set()
        for constant in part.lent_arrays:
            self.assign_path(constant)
        for constant, path in part.reached.items():
            if tuple(path.split(".")[:-1]) in part.kept:
                part.tensors[constant] = path

    def access(self, constant: str) -> str:
        """Return the attribute path that reads ``constant``."""
        if constant in self.part.reached:
            return self.part.reached[constant]
        if constant in self.weights:
            path = self.weights[constant]
        else:
            path = self.paths.get(constant) or self.assign_path(constant)
        return self.containers.access(path).removeprefix("self.")

    def reserve(self, constants: Iterable[str]) -> None:
        """Mark the lists that will get arrays as further members.

        Arrays that are not float32 belong to no layer: a list may contain some
        layers, and arrays instead of others, so it is no list of modules only.
        Arrays without a path in the file do not get the name of a module with
        submodules.
        """
        for constant in constants:
            is_elsewhere = constant in self.weights or constant in self.part.reached
            path = () if is_elsewhere else self.authored_path(constant)
            if len(path) > 1 and self.containers.has_room(path):
                self.names.add(path[0])
                self.containers.growing |= {
                    path[:n]
                    for n in range(1, len(path))
                    if path[n].isdigit()
                    and path[n] not in self.containers.names(path[:n])
                }

    def assign_path(self, constant: str) -> Path:
        """Create an attribute for ``constant``; return its path."""
        text = tensor_text(self.graph, constant)
        settled_attributes = tuple(
            filter(None, self.settled_attributes.get(constant, "").split("."))
        )
        settled_attributes = settled_attributes or self.part.lent_arrays.get(
            constant, ()
        )
        path = settled_attributes or self.authored_path(constant)
        if self.has_room(path):
            self.containers.add(path, text)
            self.names.add(path[0])
        else:
            is_named = path and not path[-1].isdigit()
            leaf = path[-1] if is_named else self.attribute_name(constant)
            path = (self.names.unique(attribute(leaf)),)
            self.plain[constant] = text
            self.plain_names.add(path[0])
        self.paths[constant] = path
        self.part.tensors[constant] = ".".join(path)
        return path

    def has_room(self, path: Path) -> bool:
        """Return whether an array can be at ``path``, inside a submodule."""
        if len(path) < 2 or not self.containers.has_room(path):
            return False
        return path[0] not in self.plain_names

    def authored_path(self, constant: str) -> Path:
        """Return the file's path for ``constant`` in this class; () if it has none."""
        name = original(self.graph, constant)
        constants = self.graph.constants
        is_literal = name in constants.literals  # added by an opset upgrade
        # A key implies a layout: transposed or reshaped arrays lose it.
        whole = same_view(constants[name], constants[constant])
        has_key = name in constants.trained or is_key(self.graph.producer, name)
        has_key &= not is_lifted(name)
        has_key &= folded_floats(self.graph, constant) in (None, 1)
        path, own = clean(name.split(".")), self.part.path
        if is_literal or not whole or not has_key:
            path = constants.layer_weights.get(constant, ())
        if not path:
            return ()
        path = without_prefix(path, constants.prefix)
        path = moved_to_sibling(own, path) or path
        pairs = zip(own, path, strict=False)
        within = len(path) > len(own) and all(a in (b, f"part_{b}") for a, b in pairs)
        inside = self.relative_path(path[len(own) :]) if within else path[-1:]
        # A single number is no attribute, but an index of a list in this class.
        return () if inside[-1].isdigit() and len(inside) == 1 else inside

    def relative_path(self, path: Path) -> Path:
        """Return ``path`` relative to this class, with numbers only as list indices."""
        renamed: Path = ()
        for segment in path:
            is_module = renamed in self.containers.children
            names = not renamed or (is_module and not self.containers.is_list(renamed))
            renamed += (f"part_{segment}" if segment.isdigit() and names else segment,)
        return renamed

    def attribute_name(self, constant: str) -> str:
        """Return an attribute name for ``constant`` if the file has no path for it."""
        name = original(self.graph, constant)
        content_word = contents(self.graph.constants[constant])
        if content_word:
            return content_word
        if constant in self.graph.constants.layer_weights:
            return self.graph.constants.layer_weights[constant][-1]
        if is_folded(self.graph, constant):
            # The plain name may be another parameter of the author.
            noun = self.nouns.get(constant, "") or self.roles.get(constant, "")
            noun = "bias" if noun == "mask" else noun
            return f"folded_{noun}" if noun else "folded"
        if is_parameter_of_paddle(name) and constant in self.roles:
            return attribute(self.roles[constant])
        word = re.split(r"[./:]", name.rstrip("/:."))[-1]
        if constant in self.graph.constants.measured:
            word = _measured_name(word)
        word = attribute(_without_operator(word))
        is_generic = re.search(r"\d{3}|^part_\d", word) or is_lifted(word)
        if not is_generic and not is_leftover(word):
            return word
        noun = self.nouns.get(constant, "")
        if noun == "mask" and is_float(self.graph.constants[constant].dtype):
            noun = "bias"
        return attribute(noun or self.roles.get(constant, "constant"))

    def fields(self) -> list[str]:
        """Return the ``__init__`` assignments of arrays outside submodules."""
        return [f"self.{self.paths[c][0]} = {t}" for c, t in self.plain.items()]


def _without_operator(name: str) -> str:
    """Return ``qkv_weight`` for ``Attention_0_qkv_weight`` of a fused attention."""
    match = re.fullmatch(r"[A-Za-z]*Attention_\d+_([a-z]\w*)", name)
    return name if match is None else match[1]


def _measured_name(name: str) -> str:
    """Return ``softmax_scale`` for a quantizer's ``Softmax_output_0_scale``."""
    match = re.fullmatch(r"(\w+?)_output_\d+_(scale|zero_point)", name)
    if match is None:
        return name
    return f"{snake(match[1]).replace('mat_mul', 'matmul')}_{match[2]}"


def tensor_text(graph: Graph, constant: str) -> str:
    """Return ``nn.parameter(...)`` for a weight, else ``nn.buffer(...)``."""
    array = graph.constants[constant]
    is_parameter = is_trained(graph, constant)
    args = [str(extent) for extent in array.shape]
    if array.dtype != float32:
        args.append(f"dtype={dtype_source(array.dtype)}")
    if not is_parameter and not is_persistent(graph, constant):
        args.append("persistent=False")
    return f"nn.{'parameter' if is_parameter else 'buffer'}({', '.join(args)})"
