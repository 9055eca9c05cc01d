"""Random numbers. Random nodes are layers with a random state."""

from __future__ import annotations

from typing import Any

import numpy as np

from burn import dtypes, ops
from burn.dtypes import DType
from burn_ir.errors import InvalidOperand
from burn_ir.op import Layer, Op, Type, Value, operator
from burn_ir.ops.functions import expect_float
from burn_ir.ops.options import non_default
from burn_ir.ops.support import element_type

#: Dtypes of random values, by operator.
BINARY = (*dtypes.SIGNED, *dtypes.UNSIGNED, *dtypes.FLOATS, dtypes.bool_)
INDICES = (dtypes.int32, dtypes.int64)


def key_of(seed: float | None) -> int | None:
    """Return the integer seed of a layer: a whole ``seed`` itself, else its bits."""
    if seed is None:
        return None
    if float(seed).is_integer() and abs(seed) < 2**63:
        return int(seed)
    return int(np.float32(seed).view(np.uint32))


def first_state(seed: float | None) -> Value:
    """Return the initial state of a layer; the default seed is 0."""
    return ops.array([(key_of(seed) or 0) % 2**64, 0], dtype=dtypes.uint64)


def drawn_type(number: int | None, other: DType, allowed: tuple[DType, ...]) -> DType:
    """Return the dtype of random values: an attribute's, else ``other``.

    Raises:
        InvalidOperand: it is not allowed.
    """
    dtype = other if number is None else element_type(number)
    if dtype not in allowed:
        raise InvalidOperand(
            f"expected another dtype to draw, got {dtypes.name_of(dtype)}"
        )
    return dtype


def options_of(dtype: DType | None, usual: DType, seed: float | None) -> Any:
    """Return the arguments ``dtype`` and ``seed`` of a layer, without defaults."""
    is_unusual = dtype is not None and dtype != usual
    options: dict[str, Any] = {"dtype": dtype} if is_unusual else {}
    return options if seed is None else {**options, "seed": key_of(seed)}


@operator
class Filling:
    """Operators that fill a shape given by an attribute."""

    shape: tuple[int, ...]
    dtype: int = 1
    seed: float | None = None

    @property
    def kind(self) -> DType:
        """Return the dtype of the random values."""
        return drawn_type(self.dtype, dtypes.float32, dtypes.FLOATS)

    def infer(self) -> Type:
        if any(extent < 0 for extent in self.shape):
            raise InvalidOperand(f"expected extents of 0 or more, got {self.shape}")
        return Type(self.kind, tuple(self.shape))

    def filling(self, name: str, options: dict[str, Any]) -> Layer:
        """Return the layer ``name``."""
        options |= options_of(self.kind, dtypes.float32, self.seed)
        return Layer(name, (tuple(self.shape),), options, {}, ())


@operator
class Following:
    """Operators that fill the shape of their operand."""

    dtype: int | None = None
    seed: float | None = None

    def infer(self, x: Type) -> Type:
        return Type(drawn_type(self.dtype, x.dtype, dtypes.FLOATS), x.shape)

    def following(self, name: str, options: dict[str, Any], x: Type) -> Layer:
        """Return the layer ``name``."""
        asked = None if self.dtype is None else element_type(self.dtype)
        options |= options_of(asked, x.dtype, self.seed)
        return Layer(name, (), options, {})


@operator
class RandomNormal(Filling, Op, onnx="RandomNormal", versions=(1, 22)):
    deterministic = False

    mean: float = 0.0
    scale: float = 1.0

    def lower(self) -> Value:
        numbers = (self.shape, self.mean, self.scale)
        return ops.normal(first_state(self.seed), *numbers, dtype=self.kind)[0]

    def layer(self) -> Layer | None:
        options = non_default(mean=(self.mean, 0.0), scale=(self.scale, 1.0))
        return self.filling("RandomNormal", options)


@operator
class RandomNormalLike(Following, Op, onnx="RandomNormalLike", versions=(1, 22)):
    deterministic = False

    mean: float = 0.0
    scale: float = 1.0

    def lower(self, x: Value) -> Value:
        dtype = drawn_type(self.dtype, x.dtype, dtypes.FLOATS)
        numbers = (ops.shape(x), self.mean, self.scale)
        return ops.normal(first_state(self.seed), *numbers, dtype=dtype)[0]

    def layer(self, x: Type) -> Layer | None:
        options = non_default(mean=(self.mean, 0.0), scale=(self.scale, 1.0))
        return self.following("RandomNormalLike", options, x)


@operator
class RandomUniform(Filling, Op, onnx="RandomUniform", versions=(1, 22)):
    deterministic = False

    high: float = 1.0
    low: float = 0.0

    def lower(self) -> Value:
        numbers = (self.shape, self.low, self.high)
        return ops.uniform(first_state(self.seed), *numbers, dtype=self.kind)[0]

    def layer(self) -> Layer | None:
        options = non_default(low=(self.low, 0.0), high=(self.high, 1.0))
        return self.filling("RandomUniform", options)


@operator
class RandomUniformLike(Following, Op, onnx="RandomUniformLike", versions=(1, 22)):
    deterministic = False

    high: float = 1.0
    low: float = 0.0

    def lower(self, x: Value) -> Value:
        dtype = drawn_type(self.dtype, x.dtype, dtypes.FLOATS)
        numbers = (ops.shape(x), self.low, self.high)
        return ops.uniform(first_state(self.seed), *numbers, dtype=dtype)[0]

    def layer(self, x: Type) -> Layer | None:
        options = non_default(low=(self.low, 0.0), high=(self.high, 1.0))
        return self.following("RandomUniformLike", options, x)


@operator
class Bernoulli(Op, onnx="Bernoulli", versions=(15, 22)):
    deterministic = False

    dtype: int | None = None
    seed: float | None = None

    def infer(self, p: Type) -> Type:
        expect_float(p)
        return Type(drawn_type(self.dtype, p.dtype, BINARY), p.shape)

    def lower(self, p: Value) -> Value:
        dtype = drawn_type(self.dtype, p.dtype, BINARY)
        return ops.bernoulli(first_state(self.seed), p, dtype=dtype)[0]

    def layer(self, p: Type) -> Layer | None:
        asked = None if self.dtype is None else element_type(self.dtype)
        return Layer("Bernoulli", (), options_of(asked, p.dtype, self.seed), {})


@operator
class Multinomial(Op, onnx="Multinomial", versions=(7, 22)):
    deterministic = False

    dtype: int = 6
    sample_size: int = 1
    seed: float | None = None

    @property
    def kind(self) -> DType:
        """Return the dtype of the classes."""
        return drawn_type(self.dtype, dtypes.int32, INDICES)

    def infer(self, x: Type) -> Type:
        expect_float(x)
        if self.sample_size < 1:
            raise InvalidOperand(f"expected samples, got {self.sample_size}")
        if x.shape is None:
            return Type(self.kind, None)
        if x.rank != 2:
            raise InvalidOperand(f"expected logits [N, C], got {x.name}")
        return Type(self.kind, (x.shape[0], self.sample_size))

    def lower(self, x: Value) -> Value:
        state, samples = first_state(self.seed), self.sample_size
        return ops.multinomial(state, x, samples, dtype=self.kind)[0]

    def layer(self, x: Type) -> Layer | None:
        options = options_of(self.kind, dtypes.int32, self.seed)
        return Layer("Multinomial", (self.sample_size,), options, {})
