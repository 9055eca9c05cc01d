"""Conversion of model strings to identifiers, literals and comments."""

import builtins
import keyword
import math
import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any

import numpy as np

from burn.dtypes import DType, bool_, name_of
from burn_import.tracing.constructor_numbers import ParameterNumber
from burn_ir.names import UniqueNames

#: Names that generated source uses itself.
RESERVED = frozenset(
    {"burn", "nn", "ops", "self", "cls", "Tensor", "Path", "Self", "NamedTuple"}
    | {"WEIGHTS", "Backend", "b64decode", "math"}
    # Names of modules for PyTorch.
    | {"torch", "F", "load_model", "Any", "Callable"}
)
#: Attribute names of modules, and of tuples.
MEMBERS = frozenset(
    {"boxes", "children", "describe", "load", "load_state_dict", "load_weights"}
    | {
        "modules",
        "num_parameters",
        "parameters",
        "record_names",
        "record_prefix",
        "save_weights",
    }
    | {"state_dict", "to", "valid", "WEIGHTS"}
)
_OF_TUPLES = {"count", "index"}
_NO_ATTRIBUTE = MEMBERS | set(keyword.kwlist)
#: Names that no local, parameter, class or function of generated source gets.
FORBIDDEN = frozenset(MEMBERS | _OF_TUPLES) | (
    # In many fonts the last three look like numbers: linters refuse them.
    RESERVED
    | {"l", "I", "O"}
    | set(keyword.kwlist)
    | set(keyword.softkwlist)
    | set(dir(builtins))
)
_MAX_LENGTH = 40
#: The end of a shortened comment.
_DOTS = "..."
#: The most strings that are written as a list, the width of the lines of a text that is
#: split instead, and where it may be split if words contain spaces or are empty.
LISTED_WORDS, WORDS_WIDTH, SEPARATORS = 8, 60, ",|;/"


def identifier(text: str, default: str = "value") -> str:
    """Return ``text`` as an ASCII identifier that is not reserved.

    Keywords, builtins and leading underscores are avoided.
    """
    word = _plain(text, default)
    return f"{word}_" if word in FORBIDDEN else word


def strip_reserved_suffix(name: str) -> str:
    """Return an identifier without the underscore that avoids a reserved name."""
    return name[:-1] if name.endswith("_") and name[:-1] in FORBIDDEN else name


def attribute(text: str, default: str = "part") -> str:
    """Return ``text`` as a module attribute, unchanged where Python allows it.

    Unlike other identifiers it may be a builtin, or ``self``.
    """
    word = _plain(text, default)
    return f"{word}_" if word in _NO_ATTRIBUTE else word


@lru_cache(maxsize=1 << 14)
def _plain(text: str, default: str) -> str:
    word = re.sub(r"[^0-9a-zA-Z]+", "_", _in_latin(text)).strip("_")
    return _with_leading_letter(word[:_MAX_LENGTH].rstrip("_"), default)


def symbol_name(text: str, default: str) -> str:
    """Return ``text`` as the name of a module or dimension, not a keyword.

    Unlike other identifiers it may be a builtin, and keeps its underscores.
    """
    word = re.sub(r"\W+", "_", _in_latin(text), flags=re.ASCII).strip("_")
    word = _with_leading_letter(word, default)
    return f"{word}_" if keyword.iskeyword(word) else word


def _in_latin(text: str) -> str:
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()


def _with_leading_letter(word: str, default: str) -> str:
    """Return ``word``, prefixed so that it begins with a letter."""
    word = word or default
    return f"{default}_{word}" if word[0].isdigit() else word


def snake(text: str, default: str = "value") -> str:
    """Return ``text`` as a lower-case identifier: ``LayerNorm`` is ``layer_norm``."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", text)
    return identifier(spaced.lower(), default)


def argument(name: str) -> str:
    """Return the argument for an input of a model.

    TensorFlow calls the first result of an operator ``name:0``.
    """
    return snake(name.removesuffix(":0"), "input")


def camel(text: str, default: str = "Model") -> str:
    """Return ``text`` as a class name: ``layer_norm`` is ``LayerNorm``."""
    words = identifier(text, default).split("_")
    name = "".join(word[:1].upper() + word[1:] for word in words)
    return f"{default}{name}" if name in FORBIDDEN or name[0].isdigit() else name


#: Endings of singular words: class, bias, radius, axis.
_ONE = ("ss", "ias", "us", "is")


def singular(name: str) -> str:
    """Return the singular: ``blocks`` gives ``block``, ``convs_2`` gives ``conv_2``."""
    word = name.rstrip("0123456789").rstrip("_")
    is_plural = len(word) > 3 and word.endswith("s") and not word.endswith(_ONE)
    return identifier(word[:-1] + name[len(word) :] if is_plural else name)


def plural(name: str) -> str:
    """Return the plural: ``block`` gives ``blocks``, ``bias`` ``all_bias``."""
    return f"all_{name}" if name.endswith("s") else identifier(f"{name}s")


class Namespace(UniqueNames):
    """Unique identifiers in one function or class: ``name``, ``name2``, ..."""

    def joint(self, name: str) -> str:
        """Return the separator between an identifier and its number."""
        joint = "V" if name[0].isupper() else "_"  # CapWords names have no underscore
        return joint if name[-1].isdigit() else ""


def dtype_source(dtype: DType) -> str:
    """Return the source of a dtype: ``burn.float32``; ``burn.bool_`` as in NumPy."""
    return "burn.bool_" if dtype == bool_ else f"burn.{name_of(dtype)}"


def literal(value: Any) -> str:
    """Return the source of a number, string, bool, None, or a tuple or list of them.

    Floats are written with the fewest digits that give the same value back in their
    own dtype. The result is ASCII.
    """
    if isinstance(value, list | tuple):
        inner = ", ".join(literal(item) for item in value)
        if isinstance(value, list):
            return f"[{inner}]"
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, ParameterNumber):
        return value.text
    if isinstance(value, float | np.floating) or _is_small_float(value):
        return _float_literal(value)
    if isinstance(value, np.generic):
        value = value.item()
    return _string_literal(value) if isinstance(value, str) else ascii(value)


def _string_literal(value: str) -> str:
    """Return the source of a string, in double quotes where they need no escape."""
    text = ascii(value)
    return text if '"' in text else f'"{text[1:-1]}"'


def words_literal(words: Sequence[str]) -> str:
    """Return the source of a list of strings: of many, one text that is split.

    ``"to be or not".split()`` takes a line where a list takes one for each word.
    """
    separator = _separator(words) if len(words) > LISTED_WORDS else None
    if separator is None:
        return literal(list(words))
    lines = [""]
    for word in words:
        if len(ascii(lines[-1])) > WORDS_WIDTH:
            lines.append("")
        lines[-1] += word + (separator or " ")
    lines[-1] = lines[-1][:-1]
    text = " ".join(map(ascii, lines))
    return f"({text}).split({ascii(separator) if separator else ''})"


def _separator(words: Sequence[str]) -> str | None:
    """Return the separator of ``str.split`` for the joined words; "" for whitespace."""
    if all(word and not any(map(str.isspace, word)) for word in words):
        return ""
    return next((s for s in SEPARATORS if not any(s in word for word in words)), None)


def _is_small_float(value: Any) -> bool:
    return isinstance(value, np.generic) and value.dtype.kind == "V"


def _float_literal(value: Any) -> str:
    number = float(value)
    if math.isnan(number):
        return 'float("nan")'
    if math.isinf(number):
        return "math.inf" if number > 0 else "-math.inf"
    text = repr(number) if isinstance(value, float) else _shortest(value)
    return text if any(c in text for c in ".en") else f"{text}.0"


def _shortest(value: Any) -> str:
    kind = type(value)
    for digits in range(1, 18):
        text = f"{float(value):.{digits}g}"
        with np.errstate(
            over="ignore"
        ):  # 7e4 overflows float16, whose maximum is 65504
            if kind(float(text)) == value:
                return repr(float(text))
    return repr(float(value))


_DIRECTIVES = re.compile(
    r"(?i)\b(coding|fmt|type|noqa|nosec|pylint|pragma|isort|ruff)\b"
)


def comment(text: str, limit: int = 100) -> str:
    """Return ``text`` for a comment or docstring: one ASCII line without directives.

    Other letters are escaped, so that a docstring shows them when it is evaluated.
    The line has at most ``limit`` columns; what is longer ends after a word, with dots.
    """
    plain = "".join(c if c.isprintable() else " " for c in text)
    plain = plain.replace("\\", "/").replace('"', "'")
    plain = _DIRECTIVES.sub(lambda m: m.group(0)[0] + "." + m.group(0)[1:], plain)
    shown = [_in_ascii(char) for char in " ".join(plain.split())]
    text = "".join(shown)
    return text if len(text) <= limit else _shortened(shown, limit)


def _shortened(shown: Sequence[str], limit: int) -> str:
    """Return the beginning of a text, up to a whole word where there is one."""
    ends = accumulate(map(len, shown))
    most = limit - len(_DOTS)
    fitting = [c for c, end in zip(shown, ends, strict=True) if end <= most]
    if " " in fitting and shown[len(fitting)] != " ":
        del fitting[len(fitting) - 1 - fitting[::-1].index(" ") :]
    return "".join(fitting).rstrip(" ,;:.(") + _DOTS


def _in_ascii(char: str) -> str:
    """Return a character as an escape in a string literal."""
    if char.isascii():
        return char
    return f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}"
