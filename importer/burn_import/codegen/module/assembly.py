"""The classes of a module, in the order of the file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from burn_import.codegen.class_text import ClassText
from burn_import.codegen.containers.containers import Holders, SharedHolder
from burn_import.codegen.merge.merge_classes import (
    Draft,
    Families,
    Family,
    class_word,
    common_names,
    find_families,
    levels,
    without_comments,
)
from burn_import.codegen.merge.merge_fields import share
from burn_import.codegen.merge.shared_holders import shared_holders
from burn_import.codegen.module.classes import ClassWriter
from burn_import.codegen.module.descriptions import part_doc
from burn_import.codegen.module.distinctive_names import distinctive_names, with_names
from burn_import.codegen.module.local_functions import as_functions
from burn_import.codegen.naming.function_names import (
    Nouns,
    names_of_nouns,
    parameter_names,
)
from burn_import.codegen.printing.target import BURN, Target
from burn_import.codegen.syntax import called_classes
from burn_import.internal import located
from burn_import.structure import ModuleNode, Tree
from burn_import.structure.shared_classes import tuple_name
from burn_import.tracing.identifiers import Namespace


def class_texts(tree: Tree, nouns: Nouns, target: Target = BURN) -> list[ClassText]:
    """Return the text of each class, with its constructor's parameters.

    Renames the modules of ``tree`` to their final classes.
    """
    run = _merge_classes(tree, nouns, target)
    if holders := shared_holders(run.holders):
        run = _merge_classes(tree, nouns, target, holders)
    texts = list(run.ordered())
    shared = share(texts, holders_only=True, previous=run.families)
    merged = [shared.texts[text.name] for text in texts if text.name in shared.texts]
    functions = {part.class_name for part in tree.classes if part.function}
    names = distinctive_names([one for one in merged if one.name not in functions])
    for part in tree.parts:
        part.class_name = names.get(part.class_name, part.class_name)
    return as_functions(with_names(merged, names), functions)


def _merge_classes(
    tree: Tree, nouns: Nouns, target: Target, shared: Sequence[SharedHolder] = ()
) -> _Assembly:
    """Return the merged classes of ``tree``, given its shared holder classes."""
    run = _Assembly(tree, nouns, target, shared)
    for level in levels(tree):
        run.settle(level)
    return run


class _Assembly:
    def __init__(
        self,
        tree: Tree,
        nouns: Nouns,
        target: Target,
        shared: Sequence[SharedHolder] = (),
    ) -> None:
        self.tree = tree
        self.target = target
        self.nouns = nouns
        self.families = Families()
        self.holders = Holders(Namespace(tree.names.names), shared, self.register)
        self.texts: dict[str, ClassText] = {}
        #: The merged class of each class, by name.
        self.names: dict[str, str] = {}

    def register(self, shared: SharedHolder) -> None:
        """Record the constructor of a class of arrays."""
        self.families.labels[shared.name] = shared.labels
        self.families.guards[shared.name] = shared.guards

    def settle(self, parts: list[ModuleNode]) -> None:
        """Write the classes of one level, whose submodules are already written."""
        drafts = [self.draft(part) for part in parts]
        for group in find_families(drafts, self.families):
            if isinstance(group, Family):
                self.unite(group, drafts)
            else:
                self.texts[group[0].part.class_name] = group[0].text

    def draft(self, part: ModuleNode) -> Draft:
        """Return the class of one module before merging."""
        with located("module", ".".join(part.path) or part.class_name):
            return self.write_draft(part)

    def write_draft(self, part: ModuleNode) -> Draft:
        """See :meth:`draft`."""
        local = self.nouns.inside(part)
        writer = ClassWriter(
            part, self.holders, self.families, local, target=self.target
        )
        root = part is self.tree.root
        wrap = tuple_name(part.class_name) if root and len(part.outputs) > 1 else ""
        doc = part_doc(part, self.tree.instances([part.class_name]))
        outputs = self.nouns.outputs if root else []
        text = writer.write(parameter_names(part, local), outputs, wrap, doc)
        return Draft(part, text, writer.bodies)

    def unite(self, family: Family, drafts: list[Draft]) -> None:
        """Write the common class of several drafts, with the name of the first."""
        parts = [draft.part for draft in family.members]
        own = [part.class_name for part in parts]
        name = next(d.part.class_name for d in drafts if d.part.class_name in own)
        stems = {draft.stem for draft in family.members}
        names = common_names(own) if len(stems) > 1 else [class_word(family, *stems)]
        free = [one for one in names if one not in self.holders.names]
        if free:
            name = self.holders.names.unique(free[0])
        nouns = self.nouns.shared(parts, family.union.parameters)
        local = self.nouns.within(parts[0], nouns)
        writer = ClassWriter(
            parts[0], self.holders, self.families, local, family, self.target
        )
        family.register(name, self.families)
        doc = part_doc(parts[0], self.tree.instances(own), not family.open_shapes)
        text = writer.write(names_of_nouns(nouns), [], "", doc)
        text.name = name
        text.fields = family.lines()
        text.constructor = family.constructor.signature
        if family.open_shapes:
            text.body = without_comments(text.body)
        self.texts[name] = text
        self.names.update(dict.fromkeys(own, name))

    def ordered(self) -> Iterator[ClassText]:
        """Yield the classes in tree order, holder classes after their first user."""
        for part in self.tree.classes:
            name = self.names.get(part.class_name, part.class_name)
            if name in self.texts:
                yield from self.with_holders(self.texts.pop(name))
        for part in self.tree.parts:
            part.class_name = self.names.get(part.class_name, part.class_name)

    def with_holders(self, text: ClassText) -> Iterator[ClassText]:
        """Yield a class, then its holder classes."""
        yield text
        for line in text.fields:
            for name in called_classes(line):
                holder = self.holders.take(name)
                if holder is not None:
                    yield from self.with_holders(holder)
