"""Maps, which are Python dicts."""

from __future__ import annotations

from typing import Literal

from burn import dtypes, ops
from burn.dtypes import float32, int64, string
from burn_ir.containers import MapType, map_of, sequence_of
from burn_ir.dim import unnamed
from burn_ir.errors import InvalidOperand
from burn_ir.op import Op, Type, Value, operator
from burn_ir.ops.ml.scores import labels_of

_CASTS = {"TO_FLOAT": float32, "TO_INT64": int64, "TO_STRING": string}


@operator
class ZipMap(Op, onnx="ZipMap", versions=(1,), domain="ai.onnx.ml"):
    """A dict of scores by label for every sample."""

    classlabels_int64s: tuple[int, ...] | None = None
    classlabels_strings: tuple[str, ...] | None = None

    def infer(self, x: Type) -> Type:
        labels = labels_of(self.classlabels_int64s, self.classlabels_strings)
        if not dtypes.is_float(x.dtype):
            raise InvalidOperand(f"expected a floating dtype, got {x.name}")
        if x.shape is not None:
            if len(x.shape) not in (1, 2):
                raise InvalidOperand(f"expected a matrix, got {x.name}")
            if isinstance(x.shape[-1], int) and x.shape[-1] != len(labels):
                raise InvalidOperand(f"expected {len(labels)} columns, got {x.name}")
        key = string if isinstance(labels[0], str) else int64
        return sequence_of(map_of(key, Type(x.dtype, ())))

    def lower(self, x: Value) -> Value:
        labels = labels_of(self.classlabels_int64s, self.classlabels_strings)
        return ops.zip_map(x, list(labels))


@operator
class DictVectorizer(Op, onnx="DictVectorizer", versions=(1,), domain="ai.onnx.ml"):
    int64_vocabulary: tuple[int, ...] | None = None
    string_vocabulary: tuple[str, ...] | None = None

    def infer(self, x: MapType) -> Type:
        words = labels_of(self.int64_vocabulary, self.string_vocabulary)
        if not isinstance(x, MapType):
            raise InvalidOperand(f"expected a map, got {x.name}")
        key = string if isinstance(words[0], str) else int64
        if x.key != key:
            raise InvalidOperand(f"expected keys of {dtypes.name_of(key)}: {x.name}")
        return Type(x.value.dtype, (1, len(words)))

    def lower(self, x: Value) -> Value:
        words = labels_of(self.int64_vocabulary, self.string_vocabulary)
        return ops.dict_vectorize(x, list(words), dtype=x.dtype)


@operator
class CastMap(Op, onnx="CastMap", versions=(1,), domain="ai.onnx.ml"):
    cast_to: Literal["TO_FLOAT", "TO_STRING", "TO_INT64"] = "TO_FLOAT"
    map_form: Literal["DENSE", "SPARSE"] = "DENSE"
    max_map: int = 1

    def infer(self, x: MapType) -> Type:
        if not isinstance(x, MapType) or x.key != int64:
            raise InvalidOperand(f"expected a map of integers, got {x.name}")
        count = self.max_map if self.map_form == "SPARSE" else unnamed()
        return Type(_CASTS[self.cast_to], (1, count))

    def lower(self, x: Value) -> Value:
        dtype = _CASTS[self.cast_to]
        if self.map_form == "SPARSE":
            return ops.cast_map(x, self.max_map, dtype=dtype)
        return ops.cast_map(x, dtype=dtype)
