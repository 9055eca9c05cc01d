"""Classes that do the same become one, with constructor parameters.

Blocks of a network are often the same but for how wide they are, for what they attend
to, or for a module that some of them have. Classes are compared level by level, those
that hold others after these: what a class holds is settled before it is compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from burn_import.codegen.class_text import ClassText
from burn_import.codegen.merge.anti_unify import Body, Union, unite
from burn_import.codegen.merge.constructor_numbers import Numerals
from burn_import.codegen.merge.constructor_parameters import Constructor, constructor
from burn_import.codegen.merge.expression_slots import DifferError
from burn_import.codegen.merge.init_fields import Column, Field, slot, unite_fields
from burn_import.structure import Part, Tree
from burn_import.structure.module_tree import calls_of
from burn_import.tracing.trace import ModuleCall

#: A class is compared with this many families that it might be of.
MOST_COMPARED = 8
#: So many equal fields are no accident.
TELLING = 3
_COMMENT = re.compile(r"\s*# [^'\"]*$")
_NUMBER = re.compile(r"(?<![\w.])\d[\w.]*")


@dataclass
class Families:
    """What is known of each class by its name."""

    #: The call that makes one: ``Block(64, 128)``.
    calls: dict[str, str] = field(default_factory=dict)
    #: What the constructor's parameters of a family are called.
    labels: dict[str, list[str]] = field(default_factory=dict)
    #: Which of a class's own parameters stand where in a call of its family.
    arrangements: dict[str, tuple[int | None, ...]] = field(default_factory=dict)

    def call(self, name: str) -> str:
        """The source that makes what was the class called ``name``."""
        return self.calls.get(name, f"{name}()")


@dataclass(frozen=True)
class Draft:
    """A class as it is by itself."""

    part: Part
    text: ClassText
    body: Body
    #: The body once steps through lists are loops.
    rolled: Body

    @property
    def stem(self) -> str:
        """The name of the class without the number that tells it from others."""
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
            made = one.text
            for number in reversed(range(len(texts))):
                made = made.replace(slot(number), texts[number])
            if all(one.having):
                lines.append(f"self.{one.name} = {made}")
                continue
            kind = made.partition("(")[0]
            condition = self.constructor.conditions[one.name]
            lines.append(
                f"self.{one.name}: {kind} | nn.Identity = "
                f"({made} if {condition} else nn.Identity())"
            )
        return lines

    def register(self, name: str, known: Families) -> None:
        """Tell ``known`` how each member is made and called from now on."""
        known.labels[name] = [p.name for p in self.constructor.parameters]
        for number, draft in enumerate(self.members):
            own = draft.part.class_name
            known.calls[own] = self.constructor.call(name, number)
            known.arrangements[own] = tuple(
                places[number] for places in self.union.parameters
            )


def find_families(
    drafts: Sequence[Draft], known: Families
) -> list[list[Draft] | Family]:
    """``drafts`` in groups: those that are one class, others alone."""
    groups: list[list[Draft] | Family] = []
    for draft in drafts:
        for group in list(_candidates(groups, draft)):
            members = group.members if isinstance(group, Family) else group
            made = family([*members, draft], known)
            if made is not None:
                groups[groups.index(group)] = made
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
    found = []
    for group in groups:
        members = group.members if isinstance(group, Family) else group
        first = members[0]
        if first.part.path and any(m.may_be(draft) for m in members):
            found.append(group)
    found.sort(key=lambda group: draft.stem not in _stems(group))
    yield from found[:MOST_COMPARED]


def _stems(group: list[Draft] | Family) -> set[str]:
    members = group.members if isinstance(group, Family) else group
    return {member.stem for member in members}


def family(drafts: Sequence[Draft], known: Families) -> Family | None:
    """The classes as one; None if they are not."""
    members = sorted(drafts, key=lambda draft: -len(draft.body.fields))
    if len({(draft.text.result, draft.text.plain[0]) for draft in drafts}) > 1:
        return None
    made = _united(members, known, rolled=False)
    return made or _united(members, known, rolled=True)


def _united(members: list[Draft], known: Families, rolled: bool) -> Family | None:
    """The classes as one by their bodies with loops, or without."""
    bodies = [draft.rolled if rolled else draft.body for draft in members]
    try:
        union = unite(bodies)
        columns: list[Column] = []
        lines = [draft.text.fields for draft in members]
        fields = unite_fields(lines, known.labels, columns)
        numerals = Numerals(union, bodies[0].trace, columns)
        names = [one.name for one in fields]
        made = constructor([*columns, *numerals.columns], fields)
        numerals.settle(made.texts[len(columns) :], names)
    except DifferError:
        return None
    optional = {one.name for one in fields if not all(one.having)}
    if optional - union.optional - unread(members[0].body, optional):
        return None
    return Family(members, union, fields, made, numerals, rolled)


def unread(body: Body, fields: set[str]) -> set[str]:
    """Those of ``fields`` that are only kept here, and called from outside."""
    called = {
        statement.path[0]
        for statement in body.trace.body.statements
        if isinstance(statement, ModuleCall)
    }
    stored = {name.partition(".")[0] for name in body.stored}
    return fields - called - stored


def common_name(names: Sequence[str]) -> str:
    """The words that all names of classes end with; "" without any."""
    words = [re.findall(r"[A-Z][a-z0-9]*", stem(name)) for name in names]
    count = 0
    while all(len(own) > count for own in words) and (
        len({own[-1 - count] for own in words}) == 1
    ):
        count += 1
    return "".join(words[0][len(words[0]) - count :])


def stem(name: str) -> str:
    """The name of a class without the number that tells it from others."""
    return re.sub(r"V?\d+$", "", name)


def bare(lines: Sequence[str]) -> list[str]:
    """``lines`` without comments."""
    return [kept for line in lines if (kept := _COMMENT.sub("", line)).strip()]


def levels(tree: Tree) -> list[list[Part]]:
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
    found: dict[int, list[Part]] = {}
    for part in tree.classes:
        found.setdefault(rank[part.class_name], []).append(part)
    return [found[level] for level in sorted(found)]


def heights(held: dict[str, set[str]]) -> dict[str, int]:
    """How many levels of classes each class holds, itself included."""
    found: dict[str, int] = {}

    def height(name: str) -> int:
        if name not in found:
            found[name] = 0  # nothing holds itself
            found[name] = 1 + max(map(height, sorted(held[name])), default=0)
        return found[name]

    for name in held:
        height(name)
    return found
