"""The engine of the CPU backend: oneDNN if available, NumPy otherwise.

Kernels call :func:`current`; before, nothing is loaded, and oneDNN's binding is not
imported. Results do not depend on the engine except for rounding.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from burn.backend.cpu.limits import no_limits
from burn.backend.cpu.onednn.binding.capture import noting

if TYPE_CHECKING:
    from burn.backend.cpu.onednn.binding.api import Api
    from burn.backend.cpu.onednn.binding.memory import Array

#: The environment variable that chooses: ``numpy``, ``onednn`` (which must then be
#: there), or nothing for whatever there is.
VARIABLE = "BURN_ENGINE"
CHOICES = ("", "numpy", "onednn")
#: The multiplications of one call from which on a missing engine is worth a warning: a
#: millisecond of NumPy's convolutions.
LARGE = 10_000_000


class Engine(NamedTuple):
    """A description of the active CPU engine.

    ``notes`` are the reasons why other engines are not used.
    """

    name: str
    version: str
    runtime: str = ""
    path: str = ""
    notes: tuple[str, ...] = ()


class Limits(NamedTuple):
    """The minimum work for which a primitive is faster than NumPy.

    ``products`` (of matrices) and ``vectors`` (with one row) are multiplications; below
    that OpenBLAS computes on one thread. The others are elements of the operand: of
    ``rows`` that are normalized, ``elements`` of activations and pooling, and
    ``simple_elements`` of arithmetic and of activations that NumPy computes quickly.
    Convolutions are always faster. Recurrent layers of fewer ``steps`` do not amortize
    the packing of their weights, which modules concatenate anew in each call.
    """

    products: int = 262_145
    vectors: int = 460_000
    rows: int = 1_000
    elements: int = 4_000
    simple_elements: int = 50_000
    steps: int = 8


_NO_LIMITS = Limits(*(0 for _ in Limits._fields))


class Session:
    """A loaded library, with its caches."""

    def __init__(self, api: Api) -> None:
        from burn.backend.cpu.onednn.binding.cache import Packed, Primitives

        self.api = api
        self.primitives = Primitives(api)
        self.packed = Packed(api)


class State:
    """The selected engine, and the limits of eager calls."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.session: Session | None = None
        self.answer: Engine | None = None
        self.limits = Limits()
        self.paused = 0
        self.forks = 0
        #: Instructions for a missing engine, until the user was warned.
        self.advice: str | None = None


STATE = State()


def current(work: int = 0) -> Session | None:
    """Return the session to compute with, None if NumPy is the engine.

    Warns once per process if NumPy computes :data:`LARGE` ``work`` (multiplications)
    only because an installable engine is missing.

    Raises:
        RuntimeError: ``BURN_ENGINE`` requests an unavailable engine.
    """
    if STATE.answer is None:
        _choose()
    if STATE.advice is not None and work >= LARGE and not STATE.paused:
        _warn()
    return None if STATE.paused else STATE.session


def loaded() -> Session | None:
    """Return the session of this process, even if it is currently disabled."""
    if STATE.answer is None:
        _choose()
    return STATE.session


def forks() -> int:
    """Return the number of forks between this process and the first one.

    Primitives that were prepared before a fork deadlock after it.
    """
    return STATE.forks


def limits() -> Limits:
    """Return the minimum work for oneDNN, which is zero in plans."""
    return STATE.limits if noting() is None else _NO_LIMITS


def engine() -> Engine:
    """Return name, version and library of the CPU engine of this process.

    Raises:
        RuntimeError: ``BURN_ENGINE`` requests an unavailable engine.
    """
    if STATE.answer is None:
        _choose()
    answer = STATE.answer
    assert answer is not None
    return _numpy("switched off here") if STATE.paused else answer


def no_gain(precision: str) -> str | None:
    """Return why a ``precision`` is not faster than float32 here, None if it is."""
    if precision not in ("bf16", "int8"):
        return None
    from burn.backend.cpu.onednn.binding.api import AVX512_BF16, VNNI

    session = current()
    if session is None:
        return f"{precision} gains nothing: NumPy computes"
    if session.api.instructions() & (VNNI if precision == "int8" else AVX512_BF16):
        return None
    return f"{precision} gains nothing: the processor has no instructions for it"


def lacks_avx512() -> bool:
    """Return whether the engine's code is for AVX2, with half as many registers."""
    from burn.backend.cpu.onednn.binding.api import AVX2, AVX512

    session = current()
    instructions = 0 if session is None else session.api.instructions()
    return instructions & (AVX2 | AVX512) == AVX2


def drop_packed(array: Array) -> None:
    """Remove the packed forms of ``array``; the next use packs it again."""
    if STATE.session is not None:
        STATE.session.packed.drop(array)


@contextmanager
def numpy_only() -> Iterator[None]:
    """Use NumPy for everything in this context, in all threads."""
    STATE.paused += 1
    try:
        yield
    finally:
        STATE.paused -= 1


@contextmanager
def whatever_size() -> Iterator[None]:
    """Use oneDNN for all supported operands in this context, however small."""
    before = STATE.limits
    STATE.limits = _NO_LIMITS
    try:
        with no_limits():
            yield
    finally:
        STATE.limits = before


def _choose() -> None:
    from burn.backend.cpu.onednn.binding.search import has_wheel, remedy

    with STATE.lock:
        if STATE.answer is not None:
            return
        choice = os.environ.get(VARIABLE, "")
        if choice not in CHOICES:
            raise RuntimeError(
                f"expected {VARIABLE} to be one of {CHOICES}: {choice!r}"
            )
        if choice == "numpy":
            STATE.answer = _numpy(f"{VARIABLE} is numpy")
            return
        notes = _load()
        if STATE.session is None:
            if choice == "onednn":
                raise RuntimeError(
                    f"{VARIABLE} is onednn, but there is no usable library: "
                    + "; ".join((*notes, remedy()))
                )
            if has_wheel() or notes:
                STATE.advice = remedy()
                notes = (*notes, STATE.advice)
            STATE.answer = _numpy(*notes)


def _warn() -> None:
    answer, STATE.advice = STATE.answer, None
    assert answer is not None
    warnings.warn(
        "burn: NumPy computes on the CPU, several times slower than oneDNN would: "
        f"{'; '.join(answer.notes)}. {VARIABLE}=numpy in the environment says that "
        "this is wanted.",
        RuntimeWarning,
        stacklevel=3,
    )


def _load() -> tuple[str, ...]:
    """Open a session if possible, and return the reasons for rejected engines."""
    from burn.backend.cpu.onednn.binding.api import Api
    from burn.backend.cpu.onednn.binding.library import find_library, keep_memory
    from burn.backend.cpu.onednn.binding.memory import addresses_are_read

    search = find_library()
    library = search.library
    if library is None:
        return search.refused
    if not addresses_are_read():
        return (*search.refused, "arrays of this Python have another form")
    keep_memory()
    STATE.session = Session(Api(library))
    STATE.answer = Engine(
        *("onednn", library.version, library.runtime, library.path), search.refused
    )
    return search.refused


def _numpy(*notes: str) -> Engine:
    import numpy

    return Engine("numpy", numpy.__version__, notes=notes)


def _forked() -> None:
    """Handle a fork: the child lacks OpenMP's threads, and would deadlock."""
    STATE.lock = threading.Lock()
    STATE.forks += 1
    if STATE.session is not None:
        STATE.session = None
        STATE.advice = (
            "start processes with 'spawn' or 'forkserver' of multiprocessing, or fork "
            "before the first operation"
        )
        STATE.answer = _numpy(
            "this process was forked from one that used oneDNN", STATE.advice
        )


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
