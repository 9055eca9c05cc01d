"""Module paths of layers in files without scopes, from the names of their weights."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, islice

from burn_import.provenance.path_segments import Path, clean
from burn_import.tracing.identifiers import snake

#: Default names of arrays, before their number.
_ANY_ARRAY = frozenset(
    {"array", "bias", "const", "constant", "filter", "initializer", "kernel", "param"}
    | {"parameter", "params", "tensor", "value", "var", "variable", "weight", "weights"}
)
#: Names that PyTorch's exporters give to arrays they computed.
_MADE_UP = re.compile(r"onnx|val_\d+$")
#: The end of a numbered prefix: the ``res2_0`` of ``res2_0_branch2a``.
_AFTER_NUMBER = re.compile(r"(?<=\d)_(?=[A-Za-z])")
#: The fewest layers of a prefix that is a module, which another prefix repeats.
_FEWEST_LAYERS = 2
#: The most segments and numbers of a name that are considered.
_MOST_SEGMENTS, _MOST_NUMBERS = 16, 8

Segments = tuple[str, ...]


def stem_paths(stems: Sequence[tuple[str, str]]) -> list[Path | None]:
    """Return the module path of each layer; None where its name says nothing.

    ``stems`` has the common stem of a layer's weights, such as
    ``conv2_1/x2/bn``, and the name of the operator, in the order of the graph. A
    stem is no module of another layer: beside ``conv2_1/x2``, the path is
    ``("conv2_1", "x2_bn")``. Prefixes with numbers are modules if two of them have
    layers of equal names: ``res2_0_branch2a`` is ``("res2_0", "branch2a")``.
    """
    segments = [_segments(stem) for stem, _ in stems]
    own = {path for path in segments if path}
    joined = [_without_layers(path, own) for path in segments]
    split = _split_numbered(_without_single_layers(joined))
    return [
        _path(path, operator) if path else None
        for path, (_, operator) in zip(split, stems, strict=True)
    ]


def _segments(stem: str) -> Segments:
    """Return the segments of a name; () if it is a number or an exporter's."""
    is_name = len(stem) > 1 and stem[0].isalpha() and not _MADE_UP.match(stem)
    return tuple(stem.split("/", _MOST_SEGMENTS)) if is_name else ()


def _without_layers(path: Segments, layers: set[Segments]) -> Segments:
    """Return ``path`` with the name of a layer joined to the following segments."""
    for length in range(1, len(path)):
        if path[:length] in layers:
            return (*path[: length - 1], "_".join(path[length - 1 :]))
    return path


def _without_single_layers(paths: Sequence[Segments]) -> list[Segments]:
    """Return ``paths`` without modules of one layer that no other module repeats."""
    below = Counter(path[:length] for path in paths for length in range(len(path)))
    kinds = Counter(tuple(map(_kind, path)) for path in paths)
    joined = []
    for path in paths:
        while len(path) > 1 and below[path[:-1]] == 1:
            is_repeated = kinds[tuple(map(_kind, path))] > 1
            if is_repeated or path[-1].lower() in _ANY_ARRAY:
                break
            path = (*path[:-2], "_".join(path[-2:]))
        joined.append(path)
    return joined


def _kind(segment: str) -> str:
    """Return a name without its numbers."""
    return re.sub(r"\d+", "#", segment)


def _split_numbered(paths: Sequence[Segments]) -> list[Segments]:
    """Return ``paths`` with the numbered prefixes of names as modules."""
    prefixes = {
        prefix for one in _prefixes(paths).values() for prefix in _repeated(one)
    }
    return [_split_prefix(path, prefixes) for path in paths]


def _split_prefix(path: Segments, prefixes: set[Segments]) -> Segments:
    """Return ``path`` with the longest of ``prefixes`` as a module."""
    for prefix, rest in reversed(list(_splits(path))):
        if prefix in prefixes:
            return (*prefix, rest)
    return path


def _splits(path: Segments) -> Iterator[tuple[Segments, str]]:
    """Yield each numbered prefix of the last name, the shortest first, and its rest."""
    if path:
        *around, name = path
        for match in islice(_AFTER_NUMBER.finditer(name), _MOST_NUMBERS):
            yield (*around, name[: match.start()]), name[match.end() :]


def _prefixes(
    paths: Sequence[Segments],
) -> Mapping[Segments, dict[Segments, list[str]]]:
    """Return the names of layers below each prefix, grouped by its name without digits.

    Only prefixes whose layers follow each other are modules.
    """
    excluded = _layers_and_lists(paths)
    groups: dict[Segments, dict[Segments, list[str]]] = {}
    depth = max((len(list(_splits(path))) for path in paths), default=0)
    for number in range(depth):
        numbered = [dict(enumerate(_splits(path))).get(number) for path in paths]
        named = [one or ((), "") for one in numbered]
        blocks = [
            (prefix, [rest for _, rest in members])
            for prefix, members in groupby(named, lambda one: one[0])
        ]
        times = Counter(prefix for prefix, _ in blocks)
        for prefix, rests in blocks:
            if prefix and prefix not in excluded and times[prefix] == 1:
                kind = (*prefix[:-1], _kind(prefix[-1]))
                groups.setdefault(kind, {})[prefix] = rests
    return groups


def _layers_and_lists(paths: Sequence[Segments]) -> set[Segments]:
    """Return the paths of layers, and prefixes with numbers after them.

    Beside ``conv2_1``, a module ``conv2`` would hold ``conv2_blk`` alone.
    """
    names = {path[: length + 1] for path in paths for length in range(len(path))}
    lists = {
        (*path[:-1], path[-1][: match.start()])
        for path in names
        for match in re.finditer(r"(?<=\d)_(?=\d)", path[-1])
    }
    return set(paths) | lists


def _repeated(blocks: Mapping[Segments, Sequence[str]]) -> Iterator[Segments]:
    """Yield the prefixes that have two layers in common with another one."""
    for prefix, rests in blocks.items():
        if any(
            len(set(rests) & set(others)) >= _FEWEST_LAYERS
            for other, others in blocks.items()
            if other != prefix
        ):
            yield prefix


def _path(segments: Segments, operator: str) -> Path | None:
    """Return a layer's path from its segments, named by its operator if need be."""
    *around, name = segments
    if name.lower() not in _ANY_ARRAY:
        return (*clean(around), snake(name, "layer"))
    return (*clean(around), snake(operator, "layer")) if around else None
