"""Source of a module tree without a known program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from burn.dtypes import float32, is_float
from burn_import.codegen.class_text import ClassText
from burn_import.codegen.containers.containers import Containers, Holders
from burn_import.codegen.merge.merge_fields import share
from burn_import.codegen.module.descriptions import DOC_ROOM, covered_modules
from burn_import.codegen.module.distinctive_names import distinctive_names, with_names
from burn_import.codegen.module.formatting import format_emitted
from burn_import.codegen.module.module import (
    Source,
    count_text,
    imports,
    wrap_sentences,
)
from burn_import.codegen.sequence_steps import layer_text
from burn_import.codegen.syntax import fields_of
from burn_import.frontends.state_dicts.key_tree import Node, Stored, tree_of
from burn_import.frontends.state_dicts.layer_inference import (
    COUNTER,
    Flow,
    find_conv1d_names,
    find_layer,
    read_tables,
)
from burn_import.provenance.path_segments import Path
from burn_import.provenance.trainable import is_buffer_name
from burn_import.skeleton.repeated_modules import (
    block_attributes,
    block_name,
    blocks_of,
    with_lists,
)
from burn_import.structure.recover import class_name
from burn_import.tracing.identifiers import (
    FORBIDDEN,
    Namespace,
    comment,
    dtype_source,
    literal,
)
from burn_ir import UnsupportedModel
from burn_ir.types import Array
from burn_templates import render

NOTE = (
    "The weights come without the program that uses them: what each class does is to "
    "be written, in its __call__. They load as they are. An export of the model (by "
    "torch.export or torch.onnx.export) has the program too."
)
#: Maximum tensors and modules of one module: each is a line of source.
MOST_MEMBERS = 3000
#: Maximum length of names in a message, and number of keys in a note.
_ROOM, _KEYS = 44, 3


def skeleton(
    arrays: Sequence[tuple[str, Array]],
    name: str,
    record: str,
    notes: Sequence[str] = (),
) -> Source:
    """Return the source of the modules that own ``arrays``, and their new keys.

    Tied weights are stored once. ``name`` is that of the top class, ``record`` the
    file name of the weights; ``notes`` are sentences for its docstring.

    Raises:
        UnsupportedModel: one module has too many members for generated source.
    """
    root = tree_of((key, array.dtype, array.shape) for key, array in arrays)
    _check_members(root)
    tied = _tied_keys(arrays)
    first = _Writer(name, has_blocks=not tied)
    first.root(root)
    texts = first.shared()
    keys = {stored.key: key for stored, key in root.stored()}
    doc = (NOTE, *notes, *_guess_note(first.flow), *_rename_note(keys))
    reads = {stored.key: stored.access for stored, _ in root.stored()}
    lines = [f"{reads[key]} = {reads[other]}" for key, other in tied.items()]
    if not tied:  # tied weights are read by the attributes that the file names
        texts = list(map(_with_lists, texts))
    texts[0] = replace(texts[0], fields=texts[0].fields + lines)
    left_out = first.counters | tied.keys()
    weights = [(keys[key], array) for key, array in arrays if key not in left_out]
    return Source(_module(name, texts, weights, record, doc), weights, name, doc)


def _check_members(node: Node) -> None:
    """Check that no module has too many members, each a line of source."""
    count = len(node.tensors) + (0 if node.listed else len(node.children))
    if count > MOST_MEMBERS:
        where = f"{'.'.join(node.path)!r}" if node.path else "the top module"
        raise UnsupportedModel(
            f"{where}: expected at most {MOST_MEMBERS} tensors and modules in one "
            f"module, got {count}; `-o weights.safetensors` writes the weights alone"
        )
    for child in node.children.values():
        _check_members(child)


def _tied_keys(arrays: Sequence[tuple[str, Array]]) -> dict[str, str]:
    """Return the key of the first tied weight for each later one."""
    first: dict[tuple[Any, ...], str] = {}
    tied = {}
    for key, array in arrays:
        if array.size > 1 and is_float(array.dtype):
            address = array.__array_interface__["data"][0]
            about = (address, array.dtype, array.shape, array.strides)
            other = first.setdefault(about, key)
            if other != key:
                tied[key] = other
    return tied


@dataclass
class _Writer:
    """A writer of classes, one for all modules with equal members."""

    top: str
    #: Whether repeated lists of layers get a class.
    has_blocks: bool = True
    texts: list[ClassText] = field(default_factory=list)
    flow: Flow = field(default_factory=Flow)
    class_names: dict[tuple[str, ...], str] = field(default_factory=dict)
    paths: dict[str, list[Path]] = field(default_factory=dict)
    #: Attributes of the modules of blocks by number, by the path of the block.
    attributes: dict[Path, dict[str, str]] = field(default_factory=dict)
    #: Keys of PyTorch's batch counters, which our layers lack.
    counters: set[str] = field(default_factory=set)

    def root(self, node: Node) -> None:
        """Write all classes, the top class first."""
        self.names = Namespace({self.top, *FORBIDDEN})
        self.flow.conv1d_names = find_conv1d_names(node)
        self.flow.tables = read_tables(node)
        if not node.listed:
            self.texts.insert(0, self.text(self.top, self.fields(node), node))
            return
        members = {
            int(name): self.module(child) for name, child in node.children.items()
        }
        steps = [
            members.get(index, "nn.Identity()") for index in range(max(members) + 1)
        ]
        text = self.text(self.top, [], node)
        self.texts.insert(
            0, replace(text, base="nn.Sequential", steps=", ".join(steps))
        )

    def module(self, node: Node) -> str:
        """Return the constructor call of a module that is not a list."""
        layer = find_layer(node, self.flow)
        if layer is not None:
            if COUNTER in node.tensors:
                self.counters.add(node.tensors[COUNTER].key)
            return layer_text(layer)
        index = len(self.texts)
        fields = self.fields(node)
        name = self.name(node, fields)
        if name not in self.paths:
            self.texts.insert(index, self.text(name, fields, node))
        self.paths.setdefault(name, []).append(node.path)
        return f"{name}()"

    def shared(self) -> list[ClassText]:
        """Return the classes; those that differ only in numbers are merged."""
        merged = share(self.texts)
        texts = []
        for text in self.texts:
            if text.name in merged.texts:
                doc = self.doc(merged.members[text.name])
                texts.append(replace(merged.texts[text.name], doc=doc))
        return with_names(texts, distinctive_names(texts))

    def name(self, node: Node, fields: list[str]) -> str:
        """Return the class with these fields; new ones are named after attributes."""
        if tuple(fields) not in self.class_names:
            is_attention = "in_proj_weight" in node.tensors
            named = any(not segment.isdigit() for segment in node.path)
            word = class_name(node.path) if named else "Block"
            word = "MultiheadAttention" if is_attention else word
            word = block_name(word, fields) if node.listed else word
            self.class_names[tuple(fields)] = self.names.unique(word)
        return self.class_names[tuple(fields)]

    def fields(self, node: Node) -> list[str]:
        """Return the assignments of ``__init__``: modules, then tensors."""
        entries = {
            path: self.module(child) for path, child in self.submodules(node, ())
        }
        if node.listed:
            names = self.attributes.setdefault(node.path, block_attributes(entries))
            entries = {(names[path[0]],): call for path, call in entries.items()}
        containers = Containers(entries, Holders(Namespace()))
        tensors = [
            f"self.{stored.attribute} = {_tensor(stored)}"
            for stored in node.tensors.values()
        ]
        return containers.fields() + tensors

    def submodules(self, node: Node, path: Path) -> Iterator[tuple[Path, Node]]:
        """Yield the submodules of ``node``, including list members, by path."""
        blocks = blocks_of(node) if self.has_blocks else []
        for child in node.children.values():
            here = (*path, child.path[-1])
            if child.listed and child not in blocks:
                yield from self.submodules(child, here)
            else:
                yield here, child

    def text(self, name: str, fields: list[str], node: Node) -> ClassText:
        """Return a class whose ``__call__`` describes the missing code."""
        numbers = self.attributes.get(node.path, {})
        members = [child.path[-1] for child in node.children.values()]
        members = [numbers.get(name, name) for name in members]
        members += [stored.attribute for stored in node.tensors.values()]
        message = _message(members)
        return ClassText(
            name,
            "",
            fields,
            ", x: Tensor",
            "Tensor",
            _missing_body(message),
            not node.path,
            {"nn"} | ({"burn"} if any("burn." in line for line in fields) else set()),
            plain=[message],
            record_names={attribute: number for number, attribute in numbers.items()},
        )

    def doc(self, members: Sequence[str]) -> str:
        """Return a comment with the paths of the modules that share a class."""
        paths = [path for member in members for path in self.paths.get(member, [])]
        if not paths:
            return ""
        return comment(f"{covered_modules(paths)}.", DOC_ROOM)


def _message(names: list[str]) -> str:
    return f"write what this does with {_join_names(names)}"


def _missing_body(message: str) -> list[str]:
    return [f"        raise NotImplementedError({literal(message)})"]


def _with_lists(text: ClassText) -> ClassText:
    """Return the class with lists of numbered modules, which its message names."""
    listed = with_lists(text)
    if listed.fields == text.fields:
        return text
    names = [name for name, _ in fields_of(listed)]
    return replace(listed, body=_missing_body(_message(names)))


def _join_names(names: list[str]) -> str:
    """Return as many of the names as fit in a line."""
    for most in range(len(names), 0, -1):
        some = names[:most] + ["more"] * (most < len(names))
        text = " and ".join(filter(None, (", ".join(some[:-1]), some[-1])))
        if len(text) <= _ROOM:
            return text
    return "what it holds"


def _tensor(stored: Stored) -> str:
    """Return ``nn.parameter(...)`` for trainable tensors, else ``nn.buffer(...)``."""
    trained = is_float(stored.dtype) and not is_buffer_name(stored.attribute)
    args = [str(extent) for extent in stored.shape]
    if stored.dtype != float32:
        args.append(f"dtype={dtype_source(stored.dtype)}")
    return f"nn.{'parameter' if trained else 'buffer'}({', '.join(args)})"


def _guess_note(flow: Flow) -> list[str]:
    """Return a note on the layers with default options."""
    if not flow.guesses:
        return []
    return [f"Weights do not tell, and here are as usual: {', '.join(flow.guesses)}."]


def _rename_note(keys: Mapping[str, str]) -> list[str]:
    """Return a note on the keys that differ from those in the file."""
    others = [(old, new) for old, new in keys.items() if old != new]
    if not others:
        return []
    listed = ", ".join(f"'{_shorten(old)}' is {new}" for old, new in others[:_KEYS])
    more = f" and {len(others) - _KEYS} more" if len(others) > _KEYS else ""
    return [f"Keys that Python does not allow are others: {listed}{more}."]


def _shorten(key: str) -> str:
    """Return ``key``, truncated if long; escaped letters count six columns."""
    most = _ROOM if key.isascii() else _ROOM // 4
    return key if len(key) <= most else f"{key[: most - 3]}..."


def _module(
    name: str,
    texts: Sequence[ClassText],
    weights: Sequence[tuple[str, Array]],
    record: str,
    notes: Sequence[str],
) -> str:
    count = sum(array.size for _, array in weights)
    return format_emitted(
        render(
            "module.py.j2",
            title=f"{name}: modules without a program.",
            inputs=[],
            outputs=[],
            notes=wrap_sentences(notes),
            weights=count_text(count),
            record=comment(record),
            record_literal=literal(record),
            imports=imports(texts, embeds=not record),
            classes=texts,
        )
    )
