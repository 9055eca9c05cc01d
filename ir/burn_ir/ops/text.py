"""String operators: concatenation, splitting, matching, normalization, n-grams."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from burn import dtypes, ops
from burn.dtypes import bool_, float32, int64, string
from burn.ops.regex import EXTRA, compiled, is_available
from burn_ir.dim import unnamed
from burn_ir.errors import InvalidOperand
from burn_ir.op import Op, Type, Value, operator
from burn_ir.ops.ml.rewriting import Replaced, burn_step, chain
from burn_ir.ops.options import non_default
from burn_ir.types import broadcast
from burn_ir.upgrade import Draft


def expect_text(*operands: Type) -> None:
    """Check that all operands hold strings.

    Raises:
        InvalidOperand: one does not.
    """
    for operand in operands:
        if operand.dtype != string:
            raise InvalidOperand(f"expected strings, got {operand.name}")


def check_pattern(pattern: str) -> None:
    """Check that ``pattern`` is a valid RE2 expression, with google-re2 installed.

    Without it the import goes on, and the module notes the extra that it needs.

    Raises:
        InvalidOperand: the pattern is not valid.
    """
    if not is_available():
        return
    try:
        compiled(pattern)
    except ValueError as error:
        raise InvalidOperand(str(error)) from None


@operator
class StringConcat(Op, onnx="StringConcat", versions=(20,)):
    def infer(self, x: Type, y: Type) -> Type:
        expect_text(x, y)
        return Type(string, broadcast(x, y))

    def lower(self, x: Value, y: Value) -> Value:
        return ops.string_concat(x, y)


@operator
class StringSplit(Op, onnx="StringSplit", versions=(20,)):
    delimiter: str | None = None
    maxsplit: int | None = None

    def infer(self, x: Type) -> tuple[Type, Type]:
        expect_text(x)
        if x.shape is None:
            return x.forget(), Type(int64, None)
        return Type(string, (*x.shape, unnamed())), Type(int64, x.shape)

    def lower(self, x: Value) -> tuple[Value, ...]:
        options = non_default(
            delimiter=(self.delimiter or "", ""), maxsplit=(self.maxsplit, None)
        )
        return ops.string_split(x, **options)


@operator
class RegexFullMatch(Op, onnx="RegexFullMatch", versions=(20,)):
    pattern: str | None = None

    def __post_init__(self) -> None:
        check_pattern(self.pattern or "")

    def infer(self, x: Type) -> Type:
        expect_text(x)
        return Type(bool_, x.shape)

    def extra(self) -> str:
        return EXTRA

    def lower(self, x: Value) -> Value:
        return ops.regex_full_match(x, pattern=self.pattern or "")


@operator
class StringNormalizer(Op, onnx="StringNormalizer", versions=(10,)):
    """Case mapping uses Unicode's rules whatever the ``locale``."""

    case_change_action: Literal["LOWER", "UPPER", "NONE"] = "NONE"
    is_case_sensitive: int = 0
    stopwords: tuple[str, ...] | None = None
    locale: str | None = None

    def infer(self, x: Type) -> Type:
        expect_text(x)
        if x.shape is None:
            return x.forget()
        if len(x.shape) not in (1, 2):
            raise InvalidOperand(f"expected [n] or [1, n], got {x.name}")
        count = x.shape[-1]
        if self.stopwords or not isinstance(count, int) or not count:
            count = unnamed()
        return x.with_shape((*x.shape[:-1], count))

    def lower(self, x: Value) -> Value:
        options: dict[str, Any] = non_default(
            case=(self.case_change_action.lower(), "none")
        )
        if self.stopwords:
            options["stopwords"] = tuple(self.stopwords)
            options |= non_default(case_sensitive=(bool(self.is_case_sensitive), False))
        return ops.string_normalize(x, **options)


@operator
class Tokenizer(Op, onnx="Tokenizer", versions=(1,), domain="com.microsoft"):
    mark: int = 0
    pad_value: str = ""
    mincharnum: int = 1
    tokenexp: str = ""
    separators: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        for pattern in (self.tokenexp, *(self.separators or ())):
            check_pattern(pattern)

    def infer(self, x: Type) -> Type:
        expect_text(x)
        if x.shape is None:
            return x.forget()
        return x.with_shape((*x.shape, unnamed()))

    def extra(self) -> str:
        has_separators = (self.separators or ("",)) != ("",)
        return EXTRA if self.tokenexp or has_separators else ""

    def lower(self, x: Value) -> Value:
        options: dict[str, Any] = {}
        if self.tokenexp:
            options["pattern"] = self.tokenexp
        elif self.separators and self.separators != ("",):
            options["separators"] = tuple(self.separators)
        options |= non_default(
            pad=(self.pad_value, ""),
            min_length=(self.mincharnum, 1),
            mark=(bool(self.mark), False),
        )
        return ops.tokenize(x, **options)


@operator
class TfIdfVectorizer(Replaced, Op, onnx="TfIdfVectorizer", versions=(9,)):
    max_gram_length: int
    max_skip_count: int
    min_gram_length: int
    mode: Literal["TF", "IDF", "TFIDF"]
    ngram_counts: tuple[int, ...]
    ngram_indexes: tuple[int, ...]
    pool_int64s: tuple[int, ...] | None = None
    pool_strings: tuple[str, ...] | None = None
    weights: tuple[float, ...] | None = None

    def replaced(self, draft: Draft) -> Draft:
        dtype = string if self.pool_strings else int64
        if (draft.type(0).dtype == string) != (dtype == string):
            shown = dtypes.name_of(dtype)
            raise InvalidOperand(f"expected {shown}, got {draft.type(0).name}")
        if self.weights and len(self.weights) != len(self.ngram_indexes):
            raise InvalidOperand(
                f"expected {len(self.ngram_indexes)} weights, got {len(self.weights)}"
            )
        pool = np.array(self.pool_strings or self.pool_int64s or (), dtype)
        self._check(len(pool))
        operands = [
            draft.constant("pool", pool),
            draft.constant("columns", np.array(self.ngram_indexes, np.int64)),
        ]
        if self.weights and self.mode != "TF":
            weights = np.array(self.weights, np.float32)
            operands.append(draft.constant("weights", weights))
        lengths = (self.min_gram_length, self.max_gram_length)
        attrs: dict[str, Any] = {"starts": self.ngram_counts, "lengths": lengths}
        attrs |= {"mode": self.mode.lower(), "max_skip": self.max_skip_count}
        step = burn_step(
            "TfIdf", *operands, width=max(self.ngram_indexes, default=-1) + 1
        )
        step.attrs.update(attrs)
        return chain(draft, draft.node.inputs[0], [step])

    def _check(self, size: int) -> None:
        """Check that the counts divide a pool of ``size`` items into n-grams."""
        ends = (*self.ngram_counts[1:], size)
        grams = 0
        for n, (start, end) in enumerate(zip(self.ngram_counts, ends, strict=True), 1):
            if not 0 <= start <= end or (end - start) % n:
                raise InvalidOperand(
                    f"expected n-grams of length {n} between {start} and {end}"
                )
            grams += (end - start) // n
        if grams != len(self.ngram_indexes) or min(self.ngram_indexes, default=0) < 0:
            raise InvalidOperand(
                f"expected {grams} ngram_indexes from 0 on, got {self.ngram_indexes}"
            )


@operator
class TfIdf(Op, onnx="TfIdf", versions=(1,), domain="burn"):
    """Counts of stored n-grams: ``ops.tfidf``."""

    width: int
    starts: tuple[int, ...]
    lengths: tuple[int, ...]
    mode: Literal["tf", "idf", "tfidf"] = "tf"
    max_skip: int = 0

    def infer(
        self, x: Type, pool: Type, columns: Type, weights: Type | None = None
    ) -> Type:
        if x.shape is None:
            return Type(float32, None)
        if len(x.shape) > 2:
            raise InvalidOperand(f"expected rank 1 or 2, got {x.name}")
        return Type(float32, (*x.shape[:-1], self.width))

    def lower(
        self, x: Value, pool: Value, columns: Value, weights: Value = None
    ) -> Value:
        operands = (x, pool, columns) + (() if weights is None else (weights,))
        return ops.tfidf(
            *operands,
            starts=tuple(self.starts),
            lengths=(self.lengths[0], self.lengths[1]),
            **non_default(mode=(self.mode, "tf"), max_skip=(self.max_skip, 0)),
        )
