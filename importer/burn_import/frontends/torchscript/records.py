"""NamedTuples created by the code of an archive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeGuard

from burn.record.errors import shown
from burn_import.frontends.torchscript.source_code import Class
from burn_import.frontends.torchscript.values import PyValue, Record
from burn_ir import InvalidModel


def is_record(definition: object) -> TypeGuard[Class]:
    """Return whether a definition in the code is a NamedTuple."""
    return isinstance(definition, Class) and definition.bases == ("NamedTuple",)


def record_of(
    cls: Class, args: Sequence[PyValue], kwargs: Mapping[str, PyValue]
) -> Record:
    """Return an instance of a NamedTuple.

    Raises:
        InvalidModel: the arguments do not match the fields.
    """
    items = dict(zip(cls.fields, args, strict=False)) | dict(kwargs)
    is_valid = len(args) + len(kwargs) == len(cls.fields)
    if not is_valid or set(items) != set(cls.fields):
        names = ", ".join(cls.fields)
        raise InvalidModel(
            f"{shown(cls.name)}: expected the fields {names}, got {len(args)} values"
        )
    return Record.of(cls.fields, (items[field] for field in cls.fields))
