"""Merging of equivalent classes into one with constructor parameters.

Blocks of a network often differ only in their width, in their attention, or in an
optional module. Classes are merged level by level, from the inside out, since the calls
of submodules must be final before a class is compared.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from burn import ops
from burn_import.codegen.class_text import ClassText
from burn_import.codegen.merge.anti_unify import unite
from burn_import.codegen.merge.constructor_numbers import Numerals, numbered
from burn_import.codegen.merge.constructors import Constructor
from burn_import.codegen.merge.expression_slots import DifferError
from burn_import.codegen.merge.field_lines import field_lines
from burn_import.codegen.merge.flattened_axes import (
    Flattened,
    differing_axes,
    with_reshapes,
)
from burn_import.codegen.merge.init_fields import Column, Field, unite_fields
from burn_import.codegen.merge.optional_blocks import OptionalBlock
from burn_import.codegen.merge.unified_body import Body, Union
from burn_import.structure import ModuleNode, Tree
from burn_import.structure.module_tree import calls_of
from burn_import.tracing.identifiers import singular
from burn_import.tracing.trace import Apply, ModuleCall

#: Maximum number of families that a class is compared with.
MOST_COMPARED = 8
#: Maximum length of an abbreviation.
SHORT = 3
#: Minimum number of equal fields that suggest equal classes.
TELLING = 3
#: Maximum number of parameters of a class that runs some statements conditionally.
MOST_WITH_BLOCKS = 6
_COMMENT = re.compile(r"\s*# [^'\"]*$")
_AS_THEY_ARE = Flattened()
_NUMBER = re.compile(r"(?<![\w.])\d[\w.]*")

#: Primitives of classes that are called `Conv` rather than `Block`.
CONVOLUTIONS = frozenset(
    {
        ops.conv,
        ops.conv_transpose,
        ops.deform_conv,
        ops.integer_conv,
        ops.quantized_conv,
    }
)


@dataclass
class Families:
    """Labels, calls and argument orders of each class, by name."""

    #: The constructor call: ``Block(64, 128)``.
    calls: dict[str, str] = field(default_factory=dict)
    #: Names of the constructor's parameters.
    labels: dict[str, list[str]] = field(default_factory=dict)
    #: Parameters that are not read where another one is None, with that one.
    guards: dict[str, dict[str, str]] = field(default_factory=dict)
    #: The index of a class's own parameter at each argument of the merged class.
    arrangements: dict[str, tuple[int | None, ...]] = field(default_factory=dict)

    def call(self, name: str) -> str:
        """Return the current constructor call for the original class ``name``."""
        return self.calls.get(name, f"{name}()")


@dataclass(frozen=True)
class Draft:
    """A class before it is merged with others."""

    part: ModuleNode
    text: ClassText
    #: Returns the body as traced, and the body with rerolled loops.
    trace_bodies: Callable[[], tuple[Body, Body]]

    @cached_property
    def bodies(self) -> tuple[Body, Body]:
        """Both bodies, computed only for a comparison with another class."""
        return self.trace_bodies()

    @property
    def body(self) -> Body:
        """The body as traced."""
        return self.bodies[0]

    @property
    def rolled(self) -> Body:
        """The body with rerolled loops."""
        return self.bodies[1]

    @property
    def size(self) -> int:
        """The number of statements of the body."""
        return len(self.body.trace.body.statements)

    @property
    def stem(self) -> str:
        """The class name without its disambiguating suffix."""
        return stem(self.part.class_name)

    def may_merge_with(self, other: Draft) -> bool:
        """Return whether two classes are candidates: by name, fields or outline."""
        have_equal_fields = (
            len(self.text.fields) >= TELLING and self.text.fields == other.text.fields
        )
        same_name = without_numbers(self.stem) == without_numbers(other.stem)
        if have_equal_fields or same_name or self.outline == other.outline:
            return True
        return self.last_word == other.last_word and self.has_fields_of(other)

    @property
    def last_word(self) -> str:
        """The last word of the class name: ``Output`` of ``LayerOutput``."""
        words = re.findall(r"[A-Z][a-z]+", self.stem)
        return str(words[-1]) if words else self.stem

    def has_fields_of(self, other: Draft) -> bool:
        """Return whether one class has all the attributes of the other, and more."""
        names = [
            {line.partition(" = ")[0] for line in draft.text.fields}
            for draft in (self, other)
        ]
        return bool(names[0] and names[1]) and (
            names[0] < names[1] or names[0] > names[1]
        )

    @property
    def outline(self) -> tuple[object, ...]:
        """A key that is equal for classes that differ only in numbers."""
        names = tuple(_NUMBER.sub("0", line) for line in self.text.fields)
        plain = tuple(
            _NUMBER.sub("0", line) for line in without_comments(self.text.plain)
        )
        return names, plain


@dataclass(frozen=True)
class Family:
    """Several drafts that become one class, the one with most modules first."""

    members: list[Draft]
    union: Union
    fields: list[Field]
    constructor: Constructor
    numerals: Numerals
    #: Whether the bodies with loops were unified.
    rolled: bool = False
    #: Axes that reshapes flatten in the unified bodies.
    flattened: Flattened = field(default_factory=Flattened)

    @property
    def bodies(self) -> list[Body]:
        """The bodies that were unified."""
        bodies = [d.rolled if self.rolled else d.body for d in self.members]
        return [with_reshapes(body, self.flattened) for body in bodies]

    @property
    def open_shapes(self) -> bool:
        """Whether the members' shapes differ."""
        first, *others = (draft.text.plain for draft in self.members)
        return any(other != first for other in others)

    def lines(self) -> list[str]:
        """Return the assignments of ``__init__``."""
        blocks = self.union.operators.values()
        absent = {
            name
            for block in blocks
            if isinstance(block, OptionalBlock)
            for name in block.fields
        }
        absent |= self.union.arrays
        lines = field_lines(self.fields, self.constructor, absent)
        return [*self.numerals.fields(), *lines]

    def register(self, name: str, families: Families) -> None:
        """Record in ``families`` the calls and argument order of each member."""
        families.labels[name] = [p.name for p in self.constructor.parameters]
        families.guards[name] = self.constructor.guards
        for number, draft in enumerate(self.members):
            own = draft.part.class_name
            families.calls[own] = self.constructor.call(name, number)
            families.arrangements[own] = tuple(
                places[number] for places in self.union.parameters
            )


def find_families(
    drafts: Sequence[Draft], families: Families
) -> list[list[Draft] | Family]:
    """Return ``drafts`` in groups of one class; unmerged ones alone."""
    groups: list[list[Draft] | Family] = []
    for draft in drafts:
        for group in list(_candidates(groups, draft)):
            members = group.members if isinstance(group, Family) else group
            merged = merge_family([*members, draft], families)
            if merged is not None:
                groups[groups.index(group)] = merged
                break
        else:
            groups.append([draft])
    return groups


def _candidates(
    groups: Sequence[list[Draft] | Family], draft: Draft
) -> Iterator[list[Draft] | Family]:
    """Yield the groups that a class may join, the likeliest first."""
    if not draft.part.path:
        return
    candidates = []
    for group in groups:
        members = group.members if isinstance(group, Family) else group
        first = members[0]
        if first.part.path and any(m.may_merge_with(draft) for m in members):
            candidates.append(group)
    candidates.sort(key=lambda group: draft.stem not in _stems(group))
    yield from candidates[:MOST_COMPARED]


def _stems(group: list[Draft] | Family) -> set[str]:
    members = group.members if isinstance(group, Family) else group
    return {member.stem for member in members}


def merge_family(drafts: Sequence[Draft], families: Families) -> Family | None:
    """Return the drafts merged to one class, or None."""
    members = sorted(drafts, key=lambda draft: (-len(draft.body.fields), -draft.size))
    if len({draft.text.plain[0] for draft in drafts}) > 1:
        return None
    if any(d.text.record_names != drafts[0].text.record_names for d in drafts):
        return None
    for rolled in (False, True):
        merged = _united(members, families, rolled)
        if merged is not None:
            return merged
    choices = differing_axes([draft.body for draft in members])
    attempts = (_united(members, families, flattened=one) for one in choices)
    return next(filter(None, attempts), None)


def _united(
    members: list[Draft],
    families: Families,
    rolled: bool = False,
    flattened: Flattened = _AS_THEY_ARE,
) -> Family | None:
    """Return the drafts merged by their bodies, with or without loops, or None."""
    bodies = [draft.rolled if rolled else draft.body for draft in members]
    bodies = [with_reshapes(body, flattened) for body in bodies]
    try:
        union = unite(bodies)
        columns: list[Column] = []
        lines = [draft.text.fields for draft in members]
        fields = unite_fields(lines, families.labels, columns, families.guards)
        init, numerals = numbered(union, bodies[0].trace, columns, fields)
    except DifferError:
        return None
    blocks = [o for o in union.operators.values() if isinstance(o, OptionalBlock)]
    if blocks and len(init.parameters) > MOST_WITH_BLOCKS:
        return None
    optional = {one.name for one in fields if not all(one.having)}
    if (
        optional
        - union.optional
        - union.arrays
        - unread_fields(members[0].body, optional)
    ):
        return None
    return Family(members, union, fields, init, numerals, rolled, flattened)


def unread_fields(body: Body, fields: set[str]) -> set[str]:
    """Return those of ``fields`` that the body neither calls nor reads."""
    called = {
        statement.path[0]
        for statement in body.trace.body.statements
        if isinstance(statement, ModuleCall)
    }
    stored = {name.partition(".")[0] for name in body.stored}
    return fields - called - stored


def common_names(names: Sequence[str]) -> Iterator[str]:
    """Yield names for merged classes, in order of preference.

    The candidates are the common suffix in words, also in the singular, and else
    the most frequent last word.
    """
    stems = list(dict.fromkeys(map(stem, names)))
    words = [re.findall(r"[A-Z][a-z0-9]*", one) for one in stems]
    count = 0
    while all(len(own) > count for own in words) and (
        len({own[-1 - count] for own in words}) == 1
    ):
        count += 1
    if count:
        common = "".join(words[0][len(words[0]) - count :])
        yield from dict.fromkeys([common, singular(common)])
        return
    ends = Counter(own[-1] for own in words if len(own) > 1)
    word, times = next(iter(ends.most_common(1)), ("", 0))
    if times > 1 and len(word) > SHORT and word.isalpha():
        yield word


def class_word(family: Family, stem: str) -> str:
    """Return ``stem``; for a single letter, ``Conv`` or ``Block``."""
    if len(stem) > 1:
        return stem
    statements = family.members[0].body.trace.body.statements
    applied = {one.primitive for one in statements if isinstance(one, Apply)}
    return "Block" if applied.isdisjoint(CONVOLUTIONS) else "Conv"


def stem(name: str) -> str:
    """Return the class name without its disambiguating suffix."""
    return re.sub(r"V?\d+$", "", name)


def without_numbers(name: str) -> str:
    """Return a class name without any numbers at the end: ``Conv3x`` of ``Conv3x3V2``.

    A number may be the author's, so this only selects classes for comparison.
    """
    return re.sub(r"(?:V?\d+)+$", "", name)


def without_comments(lines: Sequence[str]) -> list[str]:
    """Return ``lines`` without comments."""
    return [text for line in lines if (text := _COMMENT.sub("", line)).strip()]


def levels(tree: Tree) -> list[list[ModuleNode]]:
    """Return the classes of a tree by level; classes only use lower levels.

    Classes with one name are on one level where possible.
    """
    contents = {
        part.class_name: {
            tree.model[id(call.part)].class_name
            for item in part.items
            for call in calls_of(item)
            if not call.part.sequence
        }
        for part in tree.classes
    }
    stems: dict[str, set[str]] = {}
    for name, inner in contents.items():
        stems.setdefault(stem(name), set()).update(map(stem, inner))
    by_name = class_heights(contents)
    by_stem = class_heights(stems)
    rank = {name: by_stem[stem(name)] for name in contents}
    if any(rank[inner] >= rank[name] for name in contents for inner in contents[name]):
        rank = by_name
    by_level: dict[int, list[ModuleNode]] = {}
    for part in tree.classes:
        by_level.setdefault(rank[part.class_name], []).append(part)
    return [by_level[level] for level in sorted(by_level)]


def class_heights(contents: dict[str, set[str]]) -> dict[str, int]:
    """Return the number of levels of classes below each class, itself included."""
    levels: dict[str, int] = {}

    def height(name: str) -> int:
        if name not in levels:
            levels[name] = 0  # a class does not contain itself
            levels[name] = 1 + max(map(height, sorted(contents[name])), default=0)
        return levels[name]

    for name in contents:
        height(name)
    return levels
