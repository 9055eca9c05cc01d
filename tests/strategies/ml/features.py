"""Examples of operators that select, complete, encode and join features."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.strategies.ml.models import ML, features
from tests.strategies.registry import (
    Array,
    Draw,
    Example,
    case,
    extents,
    floats,
    generator,
    integers,
)

_WORDS = ("ham", "egg", "rye", "jam", "", "\xe4")


def words(draw: Draw, shape: tuple[int, ...]) -> Array:
    """Strings of few kinds."""
    flat = generator(draw).integers(0, len(_WORDS), int(np.prod(shape)))
    out = np.empty(len(flat), object)
    out[:] = [_WORDS[i] for i in flat]
    return out.reshape(shape)


@case("Binarizer", domain=ML)
def binarizer(draw: Draw, version: int) -> Example:
    x = features(draw, 3)
    if x.dtype not in (np.float32, np.float64):
        x = x.astype(draw(st.sampled_from(["i4", "i8"])))
    threshold = draw(st.sampled_from([0.0, 0.5, -1.0, -0.5]))
    return Example({"threshold": threshold}, [x], smooth=False)


@case("Imputer", domain=ML)
def imputer(draw: Draw, version: int) -> Example:
    width = draw(st.integers(1, 4))
    count = draw(st.sampled_from([1, width]))
    values = tuple(range(5, 5 + count))
    if draw(st.booleans()):
        x = integers(draw, (4, width), -1, 1)
        attrs: Any = {"imputed_value_int64s": values, "replaced_value_int64": 1}
        return Example(attrs, [x], symbols={0: ("rows", width)})
    x = integers(draw, (4, width), -1, 1, np.float32)
    replaced = draw(st.sampled_from([float("nan"), 1.0]))
    x[x == 1.0] = replaced
    imputed = tuple(v + 0.5 for v in values)
    attrs = {"imputed_value_floats": imputed, "replaced_value_float": replaced}
    return Example(attrs, [x], smooth=False, symbols={0: ("rows", width)})


@case("FeatureVectorizer", domain=ML)
def feature_vectorizer(draw: Draw, version: int) -> Example:
    dtype = draw(st.sampled_from(["f4", "f8", "i4", "i8"]))
    rows = draw(st.integers(1, 4))
    widths = [draw(st.integers(1, 4)) for _ in range(draw(st.integers(1, 3)))]
    inputs: list[Array | None] = [floats(draw, (rows, w), dtype) * 4 for w in widths]
    inputs = [None if x is None else x.astype(dtype) for x in inputs]
    attrs = {"inputdimensions": tuple(widths)}
    return Example(attrs, inputs, resizable=False, stored=frozenset())


@case("ArrayFeatureExtractor", domain=ML)
def array_feature_extractor(draw: Draw, version: int) -> Example:
    shape = extents(draw, 1, 4)
    x = draw(st.sampled_from([floats(draw, shape), integers(draw, shape, -9, 9)]))
    if draw(st.booleans()):
        x = words(draw, shape)
    count = draw(st.integers(1, 12))
    indices = integers(draw, (count,), 0, shape[-1] - 1)
    if draw(st.booleans()):
        first = draw(st.integers(0, shape[-1] - 1))
        indices = np.arange(first, shape[-1])
    indices = draw(st.sampled_from([indices, indices[None]]))
    return Example({}, [x, indices], resizable=False)


@case("OneHotEncoder", domain=ML)
def one_hot_encoder(draw: Draw, version: int) -> Example:
    shape = extents(draw, 1, 3)
    if draw(st.booleans()):
        strict = draw(st.integers(0, 1))
        cats = _WORDS if strict else _WORDS[1:4]
        named = {"cats_strings": cats, "zeros": 1 - strict}
        return Example(named, [words(draw, shape)])
    cats = draw(st.permutations([0, 3, -2, 1, 7, 9, 11, 12, 13]))
    dtype = draw(st.sampled_from(["i8", "i4", "f4", "f8"]))
    attrs = {"cats_int64s": tuple(cats), "zeros": 1}
    x = integers(draw, shape, -3, 4, dtype)
    return Example(attrs, [x], smooth=False)


@case("CategoryMapper", domain=ML)
def category_mapper(draw: Draw, version: int) -> Example:
    shape = extents(draw)
    attrs: dict[str, Any] = {"cats_strings": _WORDS[1:4], "cats_int64s": (7, -1, 3)}
    attrs |= {"default_int64": 9, "default_string": "none"}
    if draw(st.booleans()):
        return Example(attrs, [words(draw, shape)])
    return Example(attrs, [integers(draw, shape, -2, 8)])


_KINDS = {"strings": object, "int64s": np.int64, "floats": np.float32}


def table(draw: Draw, kind: str, count: int) -> tuple[Any, ...]:
    """Distinct keys or values of one kind."""
    if kind == "strings":
        return tuple(f"k{i}" for i in draw(st.permutations(range(count))))
    numbers = draw(st.permutations(range(-2, count - 2)))
    if kind == "int64s":
        return tuple(numbers)
    return tuple(n / 2 for n in numbers)


@case("LabelEncoder", domain=ML)
def label_encoder(draw: Draw, version: int) -> Example:
    shape, count = extents(draw), draw(st.integers(1, 12))
    if version == 1:
        attrs: Any = {"classes_strings": _WORDS[1:5], "default_string": "none"}
        if draw(st.booleans()):
            return Example(attrs, [words(draw, shape)])
        return Example(attrs, [integers(draw, shape, -1, 5)])
    pairs = [("strings", "int64s"), ("int64s", "strings"), ("floats", "strings")]
    pairs += [("strings", "floats"), ("int64s", "floats"), ("int64s", "int64s")]
    pairs += [("floats", "floats"), ("floats", "int64s"), ("strings", "strings")]
    keys, values = draw(st.sampled_from(pairs))
    entries = table(draw, keys, count)
    attrs = {f"keys_{keys}": entries, f"values_{values}": table(draw, values, count)}
    attrs |= {"default_int64": 99, "default_float": 0.25, "default_string": "none"}
    index = integers(draw, shape, 0, count)
    choices = np.empty(count + 1, _KINDS[keys])
    choices[:] = [*entries, "zz" if keys == "strings" else 77]
    x = choices[index]
    if version == 4 and keys != "strings" and values != "strings" and keys == values:
        return with_tensors(draw, entries, attrs[f"values_{values}"], x)
    return Example(attrs, [x], discrete=frozenset({0}))


def with_tensors(draw: Draw, keys: Any, values: Any, x: Array) -> Example:
    """The example with tensors for lists, which may be of dtypes that lists are not."""
    dtype = x.dtype if x.dtype == np.int64 else np.dtype("f8")
    attrs = {
        "keys_tensor": np.array(keys, dtype),
        "values_tensor": np.array(values, dtype),
        "default_tensor": np.array([41], dtype),
    }
    return Example(attrs, [x.astype(dtype)], discrete=frozenset({0}))


@case("Impute", domain="burn")
def impute(draw: Draw, version: int) -> Example:
    x = integers(draw, (4, 3), -1, 1, np.float32)
    x[x == 1.0] = np.nan
    values = floats(draw, (3,))
    attrs = {"missing": float("nan")}
    return Example(attrs, [x, values], smooth=False, resizable=False)


@case("Lookup", domain="burn")
def lookup(draw: Draw, version: int) -> Example:
    x = integers(draw, extents(draw), 0, 6, np.float32)
    x[x == 6.0] = np.nan
    keys = np.array([3, 1, np.nan, 3, 5], np.float32)
    values = np.array([10, 20, 30, 40, 50])
    fixed = frozenset({0, 1})
    return Example({"default": -1}, [x, keys, values], discrete=fixed, resizable=False)


@case("OneHotCategories", domain="burn")
def one_hot_categories(draw: Draw, version: int) -> Example:
    x = integers(draw, extents(draw, 2, 3), 0, 3)
    fixed = frozenset({1})
    cats = np.array([3, 0, 1, 2])
    return Example({"strict": draw(st.integers(0, 1))}, [x, cats], always_stored=fixed)
