"""Options of an import."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import astuple, dataclass, field, replace
from typing import Any

#: The extents of an input: numbers, and names of those that may differ from call to
#: call.
Extents = tuple[int | str, ...]

#: Stands for all passes that run unless somebody chooses, in a list of passes.
ALL = "all"
#: What can stand between the layers of an ``nn.Sequential``.
ACTIVATIONS = ("relu", "gelu", "tanh", "silu", "sigmoid", "none")
#: What its convolutions can do at borders, and what can stand behind them.
PADDINGS = ("same", "valid")
POOLS = ("max", "average", "none")
#: The libraries that a module can be written for.
TARGETS = ("burn", "torch")
#: What a module can be asked to compute in.
DTYPES = ("float16", "bfloat16", "float32", "float64")

_EXTENT = re.compile(r"[0-9]{1,18}|[A-Za-z][A-Za-z0-9_]*", re.ASCII)


@dataclass(frozen=True)
class Hints:
    """Facts about a model that a file of weights does not contain.

    ``config`` is the path of its ``config.json``; None is the one beside the file, if
    any. ``top_level_key`` names the dict in a checkpoint that holds the weights.
    ``activation`` is what stands between the layers of an ``nn.Sequential`` (of
    ``ACTIVATIONS``), ``padding`` (of ``PADDINGS``) is that of its convolutions, and
    ``pool`` (of ``POOLS``) stands behind them.
    """

    config: str | None = None
    top_level_key: str | None = None
    activation: str | None = None
    padding: str | None = None
    pool: str | None = None


@dataclass(frozen=True)
class Options:
    """Options for the generated module.

    ``class_name`` is the name of the top class; None takes it from ``stem``, the name
    of the module to write, and None takes that from the model's file. ``passes`` names
    the passes that simplify the graph; None is the same as ``"all"`` among them: those
    that run by default. ``operators`` names importable modules, which declare operators
    of the caller's own.

    ``flat`` puts everything in one class. ``dtype`` (of ``DTYPES``) is what the module
    computes in instead of the file's floating dtypes. ``shapes`` fixes and names the
    extents of inputs. ``inputs`` and ``outputs`` are names of values in the file
    between which a part of the model is cut out; empty leaves those of the model.
    ``hints`` are for files that hold weights alone. ``target`` (of ``TARGETS``) is the
    library that the module is written for. ``standalone`` puts the parts of the runtime
    that the module uses into its file, which then needs NumPy alone.
    """

    class_name: str | None = None
    stem: str | None = None
    passes: tuple[str, ...] | None = None
    operators: tuple[str, ...] = ()
    flat: bool = False
    dtype: str | None = None
    shapes: Mapping[str, Extents] = field(default_factory=dict)
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    hints: Hints = Hints()
    standalone: bool = False
    target: str = "burn"

    @property
    def weights(self) -> str:
        """The file name of the record that the module loads, beside it."""
        return f"{self.stem or 'model'}.safetensors"

    @property
    def mark(self) -> str:
        """Return a digest of the options except names; "" for the defaults."""
        hint_values = astuple(replace(self.hints, config=None))
        wanted: tuple[Any, ...] = (
            None if self.passes is None else sorted(set(self.passes)),
            self.flat,
            self.dtype,
            sorted((name, tuple(extents)) for name, extents in self.shapes.items()),
            tuple(self.inputs),
            tuple(self.outputs),
        )
        if hint_values != astuple(Hints()):
            wanted += hint_values
        if self.standalone:
            wanted += ("standalone",)
        if self.target != "burn":
            wanted += (self.target,)
        if wanted == (None, False, None, [], (), ()):
            return ""
        return hashlib.sha256(ascii(wanted).encode("ascii")).hexdigest()[:8]


def parse_shape(text: str) -> tuple[str, Extents]:
    """The input and its extents in ``x=batch,3,224,224``; ``x=`` is a scalar.

    Raises:
        ValueError: it is not of this form.
    """
    name, equals, extents = text.rpartition("=")
    if not equals or not name:
        raise ValueError(f"expected INPUT=EXTENT,..., got {text!r}")
    return name, parse_extents(extents)


def parse_extents(text: str) -> Extents:
    """The extents in ``batch,3,224,224``.

    Raises:
        ValueError: one is neither a number nor a name.
    """
    parts = [part.strip() for part in text.split(",")] if text.strip() else []
    for part in parts:
        if not is_extent(part):
            raise ValueError(f"expected a number or a name as extent, got {part!r}")
    return tuple(int(part) if part.isdigit() else part for part in parts)


def is_extent(value: object) -> bool:
    """Return whether ``value`` is a number of 0 or more, or the name of an extent."""
    import keyword

    if isinstance(value, str):
        return bool(_EXTENT.fullmatch(value)) and not keyword.iskeyword(value)
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def split_names(texts: tuple[str, ...]) -> tuple[str, ...]:
    """The names in several lists of names with commas between them."""
    names = (name.strip() for text in texts for name in text.split(","))
    return tuple(name for name in names if name)
