"""Options of an import."""

import re
from collections.abc import Mapping
from dataclasses import astuple, dataclass, field, replace
from typing import Any

#: Dimensions of an input: fixed sizes, or names of those that vary between calls.
Extents = tuple[int | str, ...]

#: Stands for the default passes in a list of passes.
ALL = "all"
#: Activations between the layers of an ``nn.Sequential``.
ACTIVATIONS = ("relu", "gelu", "tanh", "silu", "sigmoid", "none")
#: Padding of its convolutions, and pooling after them.
PADDINGS = ("same", "valid")
POOLS = ("max", "average", "none")
#: Libraries that a module can be written for.
TARGETS = ("burn", "torch")
#: The size in bytes above which a record is written in several files.
SHARD_SIZE = 5 * 10**9
#: Dtypes that a module can compute in.
DTYPES = ("float16", "bfloat16", "float32", "float64")

_EXTENT = re.compile(r"[0-9]{1,18}|[A-Za-z][A-Za-z0-9_]*", re.ASCII)


@dataclass(frozen=True)
class Hints:
    """Facts about a model that a file of weights does not contain.

    ``config`` is the path of its ``config.json``; None is the one beside the file,
    if any. ``top_level_key`` names the dict in a checkpoint that holds the weights.
    ``activation`` (of ``ACTIVATIONS``) runs between the layers of an
    ``nn.Sequential``, ``padding`` (of ``PADDINGS``) is that of its convolutions,
    and ``pool`` (of ``POOLS``) follows them.
    """

    config: str | None = None
    top_level_key: str | None = None
    activation: str | None = None
    padding: str | None = None
    pool: str | None = None


@dataclass(frozen=True)
class Options:
    """Options for the generated module.

    ``class_name`` is the name of the top class; by default it is derived from
    ``stem``, the name of the module to write, which defaults to that of the model's
    file. ``passes`` names the simplification passes; ``"all"`` stands for the
    default ones, and None means ``"all"``. ``operators`` names importable modules
    that declare custom operators.

    ``flat`` writes a single class. ``dtype`` (of ``DTYPES``) replaces the file's
    floating dtypes in computations. ``shapes`` fixes and names the dimensions of
    inputs. ``inputs`` and ``outputs`` name values in the file that bound the
    imported part of the model; empty keeps those of the model. ``hints`` are for
    files that hold weights alone. ``target`` (of ``TARGETS``) is the library that
    the module is written for. ``standalone`` copies the used parts of the runtime
    into the module, which then needs only NumPy. ``embed`` writes the weights into
    the module instead of a file beside it. ``dropout`` restores the dropout that a file
    for inference records and does not apply. Records larger than ``shard_size`` bytes
    (5 GB) are written in files of at most this size; those of standalone modules and of
    PyTorch are one file.
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
    embed: bool = False
    dropout: bool = False
    shard_size: int | None = None

    @property
    def largest_file(self) -> int | None:
        """Return the size in bytes above which the record is sharded; None for any."""
        if self.embed or self.standalone or self.target != "burn":
            return None
        return SHARD_SIZE if self.shard_size is None else self.shard_size

    @property
    def weights(self) -> str:
        """File name of the record beside the module; "" if it is embedded."""
        return "" if self.embed else f"{self.stem or 'model'}.safetensors"

    @property
    def mark(self) -> str:
        """Return a digest of the options except names; "" for the defaults."""
        hint_values = astuple(replace(self.hints, config=None))
        settings: tuple[Any, ...] = (
            None if self.passes is None else sorted(set(self.passes)),
            self.flat,
            self.dtype,
            sorted((name, tuple(extents)) for name, extents in self.shapes.items()),
            tuple(self.inputs),
            tuple(self.outputs),
        )
        if hint_values != astuple(Hints()):
            settings += hint_values
        if self.standalone:
            settings += ("standalone",)
        if self.target != "burn":
            settings += (self.target,)
        if self.embed:
            settings += ("embed",)
        if self.dropout:
            settings += ("dropout",)
        if self.shard_size is not None:
            settings += (self.shard_size,)
        if settings == (None, False, None, [], (), ()):
            return ""
        import hashlib  # loads OpenSSL, which `--version` does without

        return hashlib.sha256(ascii(settings).encode("ascii")).hexdigest()[:8]


def parse_shape(text: str) -> tuple[str, Extents]:
    """Return the input and dimensions in ``x=batch,3,224,224``; ``x=`` is a scalar.

    Raises:
        ValueError: the text has another form.
    """
    name, equals, extents = text.rpartition("=")
    if not equals or not name:
        raise ValueError(f"expected INPUT=EXTENT,..., got {text!r}")
    return name, parse_extents(extents)


def parse_extents(text: str) -> Extents:
    """Return the dimensions in ``batch,3,224,224``.

    Raises:
        ValueError: one is neither a number nor a name.
    """
    parts = [part.strip() for part in text.split(",")] if text.strip() else []
    for part in parts:
        if not is_extent(part):
            raise ValueError(
                f"expected a number or a name as extent, got {part!r}; "
                "commas are between extents: x=batch,3,224,224"
            )
    return tuple(int(part) if part.isdigit() else part for part in parts)


def is_extent(value: object) -> bool:
    """Return whether ``value`` is a size of 0 or more, or a dimension name."""
    import keyword

    if isinstance(value, str):
        return bool(_EXTENT.fullmatch(value)) and not keyword.iskeyword(value)
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def split_names(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names in several comma-separated lists."""
    names = (name.strip() for text in texts for name in text.split(","))
    return tuple(name for name in names if name)
