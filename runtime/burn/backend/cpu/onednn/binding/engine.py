"""The engine of the CPU backend: oneDNN if it can be had, NumPy otherwise.

Kernels ask :func:`current`; nothing is loaded before the first does so. Results do not
depend on the engine but for rounding.
"""

import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from burn.backend.cpu.onednn.binding.api import AVX512_BF16, VNNI, Api
from burn.backend.cpu.onednn.binding.cache import Packed, Primitives
from burn.backend.cpu.onednn.binding.capture import noting
from burn.backend.cpu.onednn.binding.library import find_library, keep_memory
from burn.backend.cpu.onednn.binding.memory import Array, addresses_are_read
from burn.backend.cpu.onednn.binding.search import has_wheel, remedy

#: The environment variable that chooses: ``numpy``, ``onednn`` (which must then be
#: there), or nothing for whatever there is.
VARIABLE = "BURN_ENGINE"
CHOICES = ("", "numpy", "onednn")
#: The multiplications of one call from which on a missing engine is worth a warning: a
#: millisecond of NumPy's convolutions.
LARGE = 10_000_000


@dataclass(frozen=True)
class Engine:
    """What computes on the CPU, as :func:`engine` answers.

    ``notes`` say why something else was not used.
    """

    name: str
    version: str
    runtime: str = ""
    path: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Limits:
    """The least work that pays the call of a primitive; below it NumPy computes.

    ``products`` (of matrices) and ``vectors`` (those with one row) are multiplications;
    up to there OpenBLAS computes on one thread. The others are elements of the operand:
    of ``rows`` that are normalised, of ``costly`` activations and pooling, and of cheap
    ones. A convolution always pays. A recurrent layer of fewer ``steps`` does not pay
    for the packing of its weights, which modules join anew in each call.
    """

    products: int = 262_145
    vectors: int = 460_000
    rows: int = 1_000
    costly: int = 4_000
    cheap: int = 50_000
    steps: int = 8


#: What a processor has to have for a precision to be quick.
_QUICK = {"bf16": AVX512_BF16, "int8": VNNI}

_WHATEVER = Limits(**dict.fromkeys(vars(Limits()), 0))


class Session:
    """A loaded library, with what is kept between calls."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.primitives = Primitives(api)
        self.packed = Packed(api)


class State:
    """The choice that was made, once, and the limits of eager calls."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.session: Session | None = None
        self.answer: Engine | None = None
        self.limits = Limits()
        self.paused = 0
        self.forks = 0
        #: What a user can do about the engine that is not there, until it was said.
        self.advice: str | None = None


STATE = State()


def current(work: int = 0) -> Session | None:
    """The session to compute with, None where NumPy is the engine.

    Warns once in a process if NumPy is to compute :data:`LARGE` ``work``
    (multiplications) only because the engine, which could be had, is not there.

    Raises:
        RuntimeError: ``BURN_ENGINE`` asks for what cannot be had.
    """
    if STATE.answer is None:
        _choose()
    if STATE.advice is not None and work >= LARGE and not STATE.paused:
        _warn()
    return None if STATE.paused else STATE.session


def loaded() -> Session | None:
    """The session of this process, although it may be switched off just now."""
    if STATE.answer is None:
        _choose()
    return STATE.session


def forks() -> int:
    """How many forks there are between this process and the one that it comes from.

    Calls of primitives that were prepared before a fork wait for ever.
    """
    return STATE.forks


def limits() -> Limits:
    """The least work that oneDNN is used for: any in a plan, which calls it at once."""
    return STATE.limits if noting() is None else _WHATEVER


def engine() -> Engine:
    """What computes on the CPU in this process: its name, version and library.

    Raises:
        RuntimeError: ``BURN_ENGINE`` asks for what cannot be had.
    """
    if STATE.answer is None:
        _choose()
    answer = STATE.answer
    assert answer is not None
    return _numpy("switched off here") if STATE.paused else answer


def no_gain(precision: str) -> str | None:
    """Why a ``precision`` is no quicker than float32 here; None if it is quicker."""
    bits = _QUICK.get(precision)
    if bits is None:
        return None
    session = current()
    if session is None:
        return f"{precision} gains nothing: NumPy computes"
    if session.api.instructions() & bits:
        return None
    return f"{precision} gains nothing: the processor has no instructions for it"


def drop_packed(array: Array) -> None:
    """Forget what ``array`` was packed to; who computes with it packs it again."""
    if STATE.session is not None:
        STATE.session.packed.drop(array)


@contextmanager
def numpy_only() -> Iterator[None]:
    """Let NumPy compute everything meanwhile, in all threads."""
    STATE.paused += 1
    try:
        yield
    finally:
        STATE.paused -= 1


@contextmanager
def whatever_size() -> Iterator[None]:
    """Let oneDNN compute whatever it can meanwhile, however small, in all threads."""
    before = STATE.limits
    STATE.limits = _WHATEVER
    try:
        yield
    finally:
        STATE.limits = before


def _choose() -> None:
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
    """Open a session if possible; what kept others from being used."""
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
    """OpenMP's threads are not there in a forked process, and it waits for them."""
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
