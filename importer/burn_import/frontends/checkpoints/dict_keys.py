"""Check of values used as dict keys."""

from __future__ import annotations

from burn_import.frontends.checkpoints.pickle_values import Value, named
from burn_ir import UnsupportedModel

#: Integers below this have distinct hashes; larger ones can be made to collide.
_LARGEST = 2**60
_MOST_ITEMS = 16


def checked_key(key: Value) -> Value:
    """Return the key if its hash is cheap and cannot be made to collide.

    Raises:
        UnsupportedModel: the value cannot be a key.
    """
    if type(key) is tuple and len(key) <= _MOST_ITEMS:
        if all(_is_plain(item) for item in key):
            return key
    elif _is_plain(key) or not isinstance(key, _UNFIT):
        return key
    raise UnsupportedModel(f"a dict with {named(key)} as a key")


#: Other keys are strings, whose hashes are randomized, or objects, hashed by identity.
_UNFIT = (int, float, tuple, list, dict, bytearray, memoryview)


def _is_plain(key: Value) -> bool:
    if type(key) is int:
        return -_LARGEST < key < _LARGEST
    return key is None or type(key) in (str, bool, float, bytes)
