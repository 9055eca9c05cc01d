"""Values that may be keys of dicts."""

from __future__ import annotations

from burn_import.frontends.checkpoints.pickle_values import Value, named
from burn_ir import UnsupportedModel

#: Integers below this have hashes of their own; larger ones can be made to collide.
_LARGEST = 2**60
_MOST_ITEMS = 16


def checked_key(key: Value) -> Value:
    """The key, if its hash is cheap and cannot be made to collide with others.

    Raises:
        UnsupportedModel: it cannot be a key.
    """
    if type(key) is tuple and len(key) <= _MOST_ITEMS:
        if all(_is_plain(item) for item in key):
            return key
    elif _is_plain(key) or not isinstance(key, _UNFIT):
        return key
    raise UnsupportedModel(f"a dict with {named(key)} as a key")


#: All others are text, which is hashed with a secret, or objects, hashed by identity.
_UNFIT = (int, float, tuple, list, dict, bytearray, memoryview)


def _is_plain(key: Value) -> bool:
    if type(key) is int:
        return -_LARGEST < key < _LARGEST
    return key is None or type(key) in (str, bool, float, bytes)
