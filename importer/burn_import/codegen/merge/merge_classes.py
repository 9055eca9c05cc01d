"""Classes that do the same become one, with constructor parameters.

Blocks of a network are often the same but for how wide they are, for what they attend
to, or for a module that some of them have. Classes are compared level by level, those
that hold others after these: what a class holds is settled before it is compared.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from burn import ops
from burn_import.codegen.class_text import ClassText
from burn_import.codegen.merge.anti_unify import Body, Union, unite
from burn_import.codegen.merge.constructor_numbers import Numerals
from burn_import.codegen.merge.constructor_parameters import Constructor, constructor
from burn_import.codegen.merge.expression_slots import DifferError
from burn_import.codegen.merge.init_fields import Column, Field, slot, unite_fields
from burn_import.structure import ModuleNode, Tree
from burn_import.structure.module_tree import calls_of
from burn_import.tracing.identifiers import singular
from burn_import.tracing.trace import Apply, ModuleCall

#: A class is compared with this many families that it might be of.
MOST_COMPARED = 8
#: A word of so many letters is an abbreviation.
SHORT = 3
#: So many equal fields are no accident.
TELLING = 3
_COMMENT = re.compile(r"\s*# [^'\"]*$")
_NUMBER = re.compile(r"(?<![\w.])\d[\w.]*")

#: Primitives of a class that is called `Conv` rather than `Block`.
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
    """Labels, calls and arrangements of each class, by its name."""

    #: The call that makes one: ``Block(64, 128)``.
    calls: dict[str, str] = field(default_factory=dict)
    #: What the constructor's parameters of a family are called.
    labels: dict[str, list[str]] = field(default_factory=dict)
    #: Which of a class's own parameters stand where in a call of its family.
    arrangements: dict[str, tuple[int | None, ...]] = field(default_factory=dict)

    def call(self, name: str) -> str:
        """Return the constructor call of the class that was called ``name``."""
        return self.calls.get(name, f"{name}()")


@dataclass(frozen=True)
class Draft:
    """A class before it is merged with others."""

    part: ModuleNode
    text: ClassText
    #: Returns the body as traced, and once steps through lists are loops.
    trace_bodies: Callable[[], tuple[Body, Body]]

    @cached_property
    def bodies(self) -> tuple[Body, Body]:
        """Return both bodies, which only a comparison with another class needs."""
        return self.trace_bodies()

    @property
    def body(self) -> Body:
        """Return the body as traced."""
        return self.bodies[0]

    @property
    def rolled(self) -> Body:
        """Return the body once steps through lists are loops."""
        return self.bodies[1]

    @property
    def size(self) -> int:
        """Return the number of statements of the body."""
        return len(self.body.trace.body.statements)

    @property
    def stem(self) -> str:
        """Return the class name without its disambiguating suffix."""
        return stem(self.part.class_name)

    def may_be(self, other: Draft) -> bool:
        """Whether it is worth to compare two classes: by name, fields or body."""
        alike = (
            len(self.text.fields) >= TELLING and self.text.fields == other.text.fields
        )
        return alike or self.stem == other.stem or self.outline == other.outline

    @property
    def outline(self) -> tuple[object, ...]:
        """The same for classes that differ in numbers alone."""
        names = tuple(_NUMBER.sub("0", line) for line in self.text.fields)
        plain = tuple(_NUMBER.sub("0", line) for line in bare(self.text.plain))
        return names, plain


@dataclass(frozen=True)
class Family:
    """Several classes that are one, the one with most modules first."""

    members: list[Draft]
    union: Union
    fields: list[Field]
    constructor: Constructor
    numerals: Numerals
    #: Whether it is the bodies with loops that are one.
    rolled: bool = False

    @property
    def bodies(self) -> list[Body]:
        """The bodies that are one."""
        return [d.rolled if self.rolled else d.body for d in self.members]

    @property
    def open_shapes(self) -> bool:
        """Whether the members' shapes differ."""
        first, *others = (draft.text.plain for draft in self.members)
        return any(other != first for other in others)

    def lines(self) -> list[str]:
        """The assignments of ``__init__``."""
        texts = self.constructor.texts
        lines = self.numerals.fields()
        for one in self.fields:
            source = one.text
            for number in reversed(range(len(texts))):
                source = source.replace(slot(number), texts[number])
            if all(one.having):
                lines.append(f"self.{one.name} = {source}")
                continue
            kind = source.partition("(")[0]
            condition = self.constructor.conditions[one.name]
            if kind == "nn.ModuleList":
                items = source.removeprefix("nn.ModuleList(").removesuffix(")")
                lines.append(
                    f"self.{one.name} = nn.ModuleList({items} if {condition} else [])"
                )
                continue
            lines.append(
                f"self.{one.name}: {kind} | nn.Identity = "
                f"({source} if {condition} else nn.Identity())"
            )
        return lines

    def register(self, name: str, families: Families) -> None:
        """Tell ``families`` how each member is made and called from now on."""
        families.labels[name] = [p.name for p in self.constructor.parameters]
        for number, draft in enumerate(self.members):
            own = draft.part.class_name
            families.calls[own] = self.constructor.call(name, number)
            families.arrangements[own] = tuple(
                places[number] for places in self.union.parameters
            )


def find_families(
    drafts: Sequence[Draft], families: Families
) -> list[list[Draft] | Family]:
    """``drafts`` in groups: those that are one class, others alone."""
    groups: list[list[Draft] | Family] = []
    for draft in drafts:
        for group in list(_candidates(groups, draft)):
            members = group.members if isinstance(group, Family) else group
            merged = family([*members, draft], families)
            if merged is not None:
                groups[groups.index(group)] = merged
                break
        else:
            groups.append([draft])
    return groups


def _candidates(
    groups: Sequence[list[Draft] | Family], draft: Draft
) -> Iterator[list[Draft] | Family]:
    """The groups that a class might be of, the likeliest first."""
    if not draft.part.path:
        return
    candidates = []
    for group in groups:
        members = group.members if isinstance(group, Family) else group
        first = members[0]
        if first.part.path and any(m.may_be(draft) for m in members):
            candidates.append(group)
    candidates.sort(key=lambda group: draft.stem not in _stems(group))
    yield from candidates[:MOST_COMPARED]


def _stems(group: list[Draft] | Family) -> set[str]:
    members = group.members if isinstance(group, Family) else group
    return {member.stem for member in members}


def family(drafts: Sequence[Draft], families: Families) -> Family | None:
    """The classes as one; None if they are not."""
    members = sorted(drafts, key=lambda draft: (-len(draft.body.fields), -draft.size))
    if len({(draft.text.result, draft.text.plain[0]) for draft in drafts}) > 1:
        return None
    if any(d.text.record_names != drafts[0].text.record_names for d in drafts):
        return None
    merged = _united(members, families, rolled=False)
    return merged or _united(members, families, rolled=True)


def _united(members: list[Draft], families: Families, rolled: bool) -> Family | None:
    """The classes as one by their bodies with loops, or without."""
    bodies = [draft.rolled if rolled else draft.body for draft in members]
    try:
        union = unite(bodies)
        columns: list[Column] = []
        lines = [draft.text.fields for draft in members]
        fields = unite_fields(lines, families.labels, columns)
        numerals = Numerals(union, bodies[0].trace, columns)
        names = [one.name for one in fields]
        init = constructor([*columns, *numerals.columns], fields)
        numerals.settle(init.texts[len(columns) :], names)
    except DifferError:
        return None
    optional = {one.name for one in fields if not all(one.having)}
    if optional - union.optional - unread(members[0].body, optional):
        return None
    return Family(members, union, fields, init, numerals, rolled)


def unread(body: Body, fields: set[str]) -> set[str]:
    """Those of ``fields`` that are only kept here, and called from outside."""
    called = {
        statement.path[0]
        for statement in body.trace.body.statements
        if isinstance(statement, ModuleCall)
    }
    stored = {name.partition(".")[0] for name in body.stored}
    return fields - called - stored


def common_names(names: Sequence[str]) -> Iterator[str]:
    """Yield names for classes that are one, the best first.

    These are the words that all names end with, also as one of these, and the word
    that most of them end with.
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


def word_of(family: Family, stem: str) -> str:
    """Return ``stem``; instead of a letter, what the class does."""
    if len(stem) > 1:
        return stem
    statements = family.members[0].body.trace.body.statements
    applied = {one.primitive for one in statements if isinstance(one, Apply)}
    return "Block" if applied.isdisjoint(CONVOLUTIONS) else "Conv"


def stem(name: str) -> str:
    """Return the class name without its disambiguating suffix."""
    return re.sub(r"V?\d+$", "", name)


def bare(lines: Sequence[str]) -> list[str]:
    """``lines`` without comments."""
    return [kept for line in lines if (kept := _COMMENT.sub("", line)).strip()]


def levels(tree: Tree) -> list[list[ModuleNode]]:
    """The classes of a tree: those on one level hold only those on levels before.

    Classes of one name are on one level where that can be.
    """
    held = {
        part.class_name: {
            tree.model[id(call.part)].class_name
            for item in part.items
            for call in calls_of(item)
            if not call.part.sequence
        }
        for part in tree.classes
    }
    stems: dict[str, set[str]] = {}
    for name, inner in held.items():
        stems.setdefault(stem(name), set()).update(map(stem, inner))
    by_name = heights(held)
    by_stem = heights(stems)
    rank = {name: by_stem[stem(name)] for name in held}
    if any(rank[inner] >= rank[name] for name in held for inner in held[name]):
        rank = by_name
    by_level: dict[int, list[ModuleNode]] = {}
    for part in tree.classes:
        by_level.setdefault(rank[part.class_name], []).append(part)
    return [by_level[level] for level in sorted(by_level)]


def heights(held: dict[str, set[str]]) -> dict[str, int]:
    """Return the number of levels of classes below each class, itself included."""
    levels: dict[str, int] = {}

    def height(name: str) -> int:
        if name not in levels:
            levels[name] = 0  # nothing holds itself
            levels[name] = 1 + max(map(height, sorted(held[name])), default=0)
        return levels[name]

    for name in held:
        height(name)
    return levels
