"""Compilation with LLVM, and parallel execution on oneDNN's OpenMP threads."""

import threading
from collections.abc import Callable
from ctypes import PYFUNCTYPE, addressof, c_int, c_size_t, c_uint, c_void_p, cast
from functools import cache, partial
from typing import Any, NamedTuple

from burn.backend.cpu.jit.entries import Native
from burn.backend.cpu.jit.pool import POOLED, shared_call, thread_count
from burn.backend.cpu.jit.selection import SHARED
from burn.backend.cpu.jit.source import Kernel
from burn.backend.cpu.jit.writer import EXPLICIT
from burn.backend.cpu.onednn.binding.engine import loaded
from burn.backend.disk_cache import kernel_cache
from burn.digests import sha256

#: Increased when passes or options of LLVM change, since cached code depends on them.
REVISION = 2
#: The functions of a source: all of its work, the part of one thread of OpenMP, and a
#: range of parts, which not all have.
NAMES = ("whole", "shared", "between")
#: The extra that installs LLVM.
EXTRA = "burn-runtime[jit]"


class Code(NamedTuple):
    """The addresses of the functions of a kernel, while its engine lives."""

    whole: int
    shared: int
    between: int | None = None


class NativeCall(NamedTuple):
    """A call that returns a status, its only function if any, and owned objects."""

    call: Callable[[], Any]
    native: Native | None
    owned: Any


class Machine:
    """LLVM for the host processor. Equal sources are compiled once.

    Object code of earlier processes is read from :func:`kernel_cache`, and new code is
    written to it.
    """

    def __init__(self) -> None:
        import llvmlite.binding as llvm
        from llvmlite import __version__

        self._llvm = llvm
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        processor = llvm.get_host_cpu_name()
        features = llvm.get_host_cpu_features().flatten()
        self._target = llvm.Target.from_default_triple().create_target_machine(
            cpu=processor, features=features, opt=3, jit=True
        )
        #: How many floats a register of the processor has.
        self.floats = _floats(features.split(","))
        # Everything that the object code of a source depends on.
        self._configuration = repr(
            (REVISION, __version__, llvm.llvm_version_info)
            + (self._target.triple, processor, features)
        )
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), self._target)
        # LLVM's passes leave memory behind in each run, so none is run twice.
        self._codes: dict[str, Code] = {}
        self._lock = threading.Lock()
        self._share = _openmp(llvm)

    def code(self, text: str) -> Code:
        """Return the machine code of a source."""
        with self._lock:
            code = self._codes.get(text)
            if code is None:
                code = self._codes[text] = self._load(text)
            return code

    def function(self, text: str) -> Callable[[int], int]:
        """Return the function of a source, of the address of its data.

        It may be called while the machine lives.
        """
        return _plain_function(self.code(text).whole)

    def call(self, kernel: Kernel) -> "NativeCall":
        """Return a call that runs a kernel."""
        code = self.code(kernel.text)
        given = [view.address for view in kernel.places] + list(kernel.numbers)
        data = (c_size_t * len(given))(*given)
        session = loaded() if self._share is not None else None
        threads = min(session.api.threads, kernel.parts) if session else 1
        if threads > 1 and kernel.work >= SHARED:
            call = partial(self._share, code.shared, addressof(data), threads, 0)
            return NativeCall(call, None, (self._engine, data))
        if session is None and code.between and kernel.work >= POOLED:
            threads = min(thread_count(), kernel.parts)
            if threads > 1:
                where = (code.between, addressof(data), kernel.parts, threads)
                return NativeCall(shared_call(*where), None, (self._engine, data))
        native = Native(code.whole, (addressof(data),))
        call = partial(_plain_function(code.whole), addressof(data))
        return NativeCall(call, native, (self._engine, data))

    def _load(self, text: str) -> Code:
        """Return the code of a source, from the cache if it is there."""
        key = sha256((self._configuration + text).encode()).hexdigest()
        objects = kernel_cache()
        content = objects.read(key)
        if content is None:
            content = self._compile(text, key)
            objects.write(key, content)
        file = self._llvm.object_file.ObjectFileRef.from_data(content)
        self._engine.add_object_file(file)
        self._engine.finalize_object()
        names = _names(text)
        addresses = (self._engine.get_function_address(f"{n}_{key}") for n in names)
        return Code(*addresses)

    def _compile(self, text: str, key: str) -> bytes:
        """Return the object code of a source, with ``key`` in its functions' names."""
        llvm = self._llvm
        module = llvm.parse_assembly(text)
        module.verify()
        for name in _names(text):
            module.get_function(name).name = f"{name}_{key}"
        if not text.startswith(EXPLICIT):
            options = llvm.create_pipeline_tuning_options(speed_level=3)
            options.loop_vectorization = options.slp_vectorization = True
            builder = llvm.create_pass_builder(self._target, options)
            builder.getModulePassManager().run(module, builder)
        code: bytes = self._target.emit_object(module)
        return code


def _names(text: str) -> list[str]:
    return [name for name in NAMES if f" @{name}(ptr %data" in text]


def _floats(features: list[str]) -> int:
    if "+avx512f" in features:
        return 16
    return 8 if "+avx" in features else 4


@cache
def machine() -> Machine:
    """Return the compiler of this process.

    Raises:
        ImportError: llvmlite is not installed.
    """
    try:
        return Machine()
    except ImportError as error:
        raise ImportError(
            f"generated kernels need llvmlite: pip install '{EXTRA}'"
        ) from error


def _plain_function(address: int) -> Callable[[int], int]:
    # The call takes less time than releasing the GIL.
    return PYFUNCTYPE(c_int, c_void_p)(address)


def _openmp(llvm: Any) -> Any:
    """Return GNU OpenMP's parallel-region function.

    None if oneDNN uses other threads, or is not available.
    """
    session = loaded()
    library = session.api.library.calls if session is not None else None
    names = ("omp_get_thread_num", "omp_get_num_threads")
    try:
        share = library.GOMP_parallel if library is not None else None
        places = [_address(getattr(library, name)) for name in names if library]
    except AttributeError:
        share, places = None, []
    for name, symbol in zip(names, places or [_address(_PLACEHOLDER)] * 2, strict=True):
        llvm.add_symbol(name, symbol)
    if share is not None:
        share.argtypes, share.restype = (c_void_p, c_void_p, c_uint, c_uint), None
    return share


def _address(function: Any) -> int:
    address = cast(function, c_void_p).value
    assert address is not None
    return address


# A placeholder for OpenMP's functions in code that never calls them.
_PLACEHOLDER = PYFUNCTYPE(None)(lambda: None)
