"""Stored arrays that the code of a class reads itself, as attributes of the class."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import numpy as np

from burn.dtypes import float32, is_float, is_integer
from burn_import.emit.containers import Containers
from burn_import.emit.leftovers import is_leftover
from burn_import.emit.render import INLINE_LIMIT
from burn_import.passes.arrays import same_view
from burn_import.source.names import Namespace, attribute, dtype_source
from burn_import.structure import Path
from burn_import.structure.homes import is_dotted, is_key, original
from burn_import.structure.parts import Part
from burn_import.structure.paths import clean
from burn_ir.graph import Graph
from burn_ir.types import Array

#: What PyTorch's models register as buffers under these names.
_BUFFERS = re.compile(
    r"(running_(mean|var)|(original_)?inv_freq|.*_ids|.*_?mask(ed_bias)?|"
    r"relative_(position_index|coords_table)|.*(cos|sin)_cached|embed_scale|"
    r"final_logits_bias)"
)


class StoredArrays:
    """The attributes of one class that are no modules, by the constants they hold.

    What the file calls by a path is at that path, so that its key is the one that it
    has in PyTorch; the name of anything else tells what it is for.
    """

    def __init__(
        self,
        part: Part,
        containers: Containers,
        nouns: Mapping[str, str],
    ) -> None:
        self.part, self.graph = part, part.graph
        self.containers, self.nouns = containers, nouns
        #: What each array is for, known once loops are made.
        self.roles: Mapping[str, str] = {}
        self.taken = Namespace(path[0] for path in containers.entries)
        self.weights = part.layer_weights()
        self.places: dict[str, Path] = {}
        self.plain: dict[str, str] = {}

    def access(self, constant: str) -> str:
        """The attribute path that the code reads ``constant`` by."""
        if constant in self.weights:
            path = self.weights[constant]
        else:
            path = self.places.get(constant) or self.place(constant)
        return self.containers.access(path).removeprefix("self.")

    def reserve(self, constants: Iterable[str]) -> None:
        """Note the lists that arrays will be further members of.

        What is not float32 is held by no layer: a list may have some layers, and the
        arrays of others. It is not run through as if all of it were modules.
        """
        for constant in constants:
            path = () if constant in self.weights else self.told(constant)
            if len(path) > 1 and self.containers.has_room(path):
                self.containers.growing |= {
                    path[:n]
                    for n in range(1, len(path))
                    if path[n].isdigit()
                    and path[n] not in self.containers.names(path[:n])
                }

    def place(self, constant: str) -> Path:
        """Make an attribute for ``constant``; its path."""
        text = tensor_text(self.graph, constant)
        path = self.told(constant)
        if len(path) > 1 and self.containers.has_room(path):
            self.containers.add(path, text)
            self.taken.taken.add(path[0])
        else:
            leaf = path[-1] if path else self.word(constant)
            path = (self.taken.unique(leaf),)
            self.plain[constant] = text
        self.places[constant] = path
        self.part.tensors[constant] = ".".join(path)
        return path

    def told(self, constant: str) -> Path:
        """The file's path for ``constant``, from this class on; () if it tells none."""
        name = original(self.graph, constant)
        constants = self.graph.constants
        made = name in constants.literals  # by an upgrade
        # A key means its layout too: what was turned or reshaped is not it.
        whole = same_view(constants[name], constants[constant])
        if made or not whole or not is_key(self.graph.producer, name):
            return ()
        path, own = clean(name.split(".")), self.part.path
        if path[-1].isdigit():
            return ()
        return path[len(own) :] if path[: len(own)] == own else path[-1:]

    def word(self, constant: str) -> str:
        """What ``constant`` is called where the file does not say where it belongs."""
        name = original(self.graph, constant)
        known = contents(self.graph.constants[constant])
        if known:
            return known
        word = attribute(re.split(r"[./:]", name.rstrip("/:."))[-1])
        if not re.search(r"\d{3}|^part_\d", word) and not is_leftover(word):
            return word
        noun = self.nouns.get(constant, "")
        if noun == "mask" and is_float(self.graph.constants[constant].dtype):
            noun = "bias"
        return noun or self.roles.get(constant, "constant")

    def fields(self) -> list[str]:
        """The assignments of ``__init__`` of what stands in no other module."""
        return [f"self.{self.places[c][0]} = {t}" for c, t in self.plain.items()]


def tensor_text(graph: Graph, constant: str) -> str:
    """``nn.parameter(...)`` for a weight, ``nn.buffer(...)`` for anything else."""
    array = graph.constants[constant]
    kind = "parameter" if is_trained(graph, constant) else "buffer"
    shape = ", ".join(map(str, array.shape))
    dtype = "" if array.dtype == float32 else f"dtype={dtype_source(array.dtype)}"
    args = ", ".join(text for text in (shape, dtype) if text)
    return f"nn.{kind}({args})"


def is_trained(graph: Graph, constant: str) -> bool:
    """Whether a stored array is a weight, to be trained, rather than a buffer.

    Files do not tell the two apart. What is no floating number cannot be trained. What
    stands in the file as a small ``Constant`` was written by hand; PyTorch's exporters
    write no weight so, other ones do. Of the rest, what PyTorch's models commonly
    register as a buffer is told by its name, and without a name by its contents: angles
    of rotary embedding, slopes, and masks.
    """
    array, constants = graph.constants[constant], graph.constants
    if not is_float(array.dtype):
        return False
    name = original(graph, constant)
    by_hand = array.size <= INLINE_LIMIT or graph.producer.startswith("pytorch")
    if by_hand and name in constants.literals:
        return False
    leaf = name.rpartition(".")[2]
    if is_dotted(name):
        return not is_buffer_name(leaf)
    return not contents(array)


def is_buffer_name(name: str) -> bool:
    """Whether PyTorch's models commonly register a buffer under this name."""
    return _BUFFERS.fullmatch(name) is not None


def contents(array: Array) -> str:
    """What a stored array is called by what it holds; "" if that says nothing."""
    size = array.size
    if size < 2 or size != max(array.shape):
        return "mask" if _is_mask(array) else ""
    flat = array.reshape(-1)
    if is_integer(array.dtype):
        if array.ndim != 2 or size <= INLINE_LIMIT:
            return ""
        if np.array_equal(flat, np.arange(size)):
            return "position_ids"
        return "" if flat.any() else "token_type_ids"
    return _ladder(flat) if array.dtype == float32 else ""


def _ladder(flat: Array) -> str:
    """What numbers are called of which each is the same part of the one before.

    Those of rotary embedding start at 1, or less if positions are scaled; those that
    ALiBi multiplies distances by start at the part itself.
    """
    if not 0 < flat[-1] < flat[0] <= 1:
        return ""
    steps = flat[1:].astype(np.float64) / flat[:-1]
    if not np.allclose(steps, steps[0], rtol=1e-4):
        return ""
    return "slopes" if np.isclose(steps[0], flat[0]) else "inv_freq"


def _is_mask(array: Array) -> bool:
    """Whether an array is zero or minus a huge number everywhere, and both."""
    if array.dtype != float32 or array.size <= INLINE_LIMIT:
        return False
    row = array[(0,) * (array.ndim - 1)]
    if (row[row >= -1e4] != 0).any():
        return False  # as most are, seen without reading them
    low = array < -1e4
    return bool(low.any() and not low.all() and not array[~low].any())
