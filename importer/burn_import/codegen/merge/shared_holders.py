"""Classes that only contain arrays, with the sizes as parameters."""

from collections.abc import Sequence

from burn_import.codegen.class_text import ClassText
from burn_import.codegen.containers.containers import Holders, SharedHolder
from burn_import.codegen.merge.merge_fields import Shared, share
from burn_import.codegen.syntax import ARRAYS, assigned_field, called_name, statement_of


def shared_holders(holders: Holders) -> list[SharedHolder]:
    """Return the classes that only contain arrays, and differ in their sizes.

    The modules around them are compared by their calls, so they must be one class
    before these are.
    """
    texts = [
        ClassText(name, "", fields)
        for name, fields in holders.fields_by_class.items()
        if all(map(_is_array, fields))
    ]
    if len(texts) < 2:
        return []
    shared = share(texts, holders_only=True)
    groups = (members for members in shared.members.values() if len(members) > 1)
    return [_holder(shared, members, holders) for members in groups]


def _is_array(field: str) -> bool:
    return called_name(assigned_field(statement_of(field))[1]) in ARRAYS


def _holder(shared: Shared, members: Sequence[str], holders: Holders) -> SharedHolder:
    """Return the class of ``members``; the first has its name."""
    name, families = members[0], shared.families
    return SharedHolder(
        shared.texts[name].fields,
        shared.texts[name].constructor,
        families.labels[name],
        families.guards[name],
        {
            tuple(holders.fields_by_class[one]): families.calls[one].removeprefix(name)
            for one in members
        },
    )
