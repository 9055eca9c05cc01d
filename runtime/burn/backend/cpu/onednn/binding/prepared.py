"""Primitives that are ready to run: code, memory objects and argument lists."""

from collections.abc import Callable
from ctypes import addressof, c_int, c_void_p
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from burn.backend.cpu.onednn.binding.api import (
    LAST_IMPLEMENTATION,
    NOT_OFFERED,
    SCRATCHPAD,
    SCRATCHPAD_MD,
    UNDEFINED,
    USER_SCRATCHPAD,
    Api,
    ExecArg,
    OneDnnError,
)
from burn.backend.cpu.onednn.binding.capture import noting
from burn.backend.cpu.onednn.binding.memory import Handle
from burn.backend.cpu.onednn.binding.scratch import Scratch

#: A handle of our own, or the pointer that oneDNN lends.
Descriptor: TypeAlias = Handle | int
#: The kinds of arguments in the order of their addresses, and their memory
#: descriptors.
Operands: TypeAlias = list[tuple[int, Descriptor]]


class PostOps:
    """Operations on each element of a result before it is written."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.handle = Handle(api, "post_ops", "post_ops_create")

    def activation(self, kind: int, alpha: float = 0.0, beta: float = 0.0) -> None:
        """Append an activation."""
        self._api.call("post_ops_append_eltwise", self.handle, kind, alpha, beta)

    def sum(
        self, scale: float = 1.0, zero_point: int = 0, kind: int = UNDEFINED
    ) -> None:
        """Append the sum with the previous content of the result memory.

        It may be of another ``kind`` than the result, and scaled.
        """
        self._api.call("post_ops_append_sum", self.handle, scale, zero_point, kind)

    def binary(self, kind: int, operand: Descriptor) -> None:
        """Append a binary operation with another operand."""
        self._api.call("post_ops_append_binary", self.handle, kind, operand)


class Scalings(NamedTuple):
    """The quantized arguments, with scales and optional zero points.

    ``scales`` has the mask of the axes along which scales vary.
    """

    scales: tuple[tuple[int, int], ...] = ()
    zero_points: tuple[int, ...] = ()


_NOT_SCALED = Scalings()


class Description:
    """A primitive descriptor, before the primitive is created.

    ``create`` is the function that creates it, without its suffix; ``args`` are its
    arguments between the engine and the attributes.
    """

    __slots__ = ("_attributes", "api", "handle", "implementation")

    def __init__(
        self,
        api: Api,
        create: str,
        *args: Any,
        post: PostOps | None = None,
        scalings: Scalings = _NOT_SCALED,
    ) -> None:
        self.api = api
        self._attributes = Handle(api, "primitive_attr", "primitive_attr_create")
        attributes = self._attributes
        api.call("primitive_attr_set_scratchpad_mode", attributes, USER_SCRATCHPAD)
        if post is not None:
            api.call("primitive_attr_set_post_ops", attributes, post.handle)
        for which, mask in scalings.scales:
            api.call("primitive_attr_set_scales_mask", attributes, which, mask)
        for which in scalings.zero_points:
            api.call("primitive_attr_set_zero_points_mask", attributes, which, 0)
        self.handle = Handle(
            *(api, "primitive_desc", f"{create}_primitive_desc_create"),
            *args,
            attributes,
        )
        self.implementation = api.name_of(self.handle)

    def next(self) -> bool:
        """Advance to the next implementation; return False if there is none."""
        try:
            self.api.call("primitive_desc_next_impl", self.handle)
        except OneDnnError as error:
            if error.status != LAST_IMPLEMENTATION:
                raise
            return False
        self.implementation = self.api.name_of(self.handle)
        return True

    def advance_to(self, name: str) -> bool:
        """Advance to the implementation ``name``; return False if there is none."""
        while self.implementation != name:
            if not self.next():
                return False
        return True

    def descriptor(self, which: int, index: int = 0) -> int:
        """Return a memory descriptor that is valid as long as this description."""
        descriptor: int = self.api.query_md(self.handle, which, index)
        return descriptor


def described(
    api: Api,
    create: str,
    *args: Any,
    avoid: str | None = None,
    is_wrong: Callable[[str], bool] | None = None,
    faster: Callable[[str], str | None] | None = None,
    post: PostOps | None = None,
    scalings: Scalings = _NOT_SCALED,
    plain: bool = False,
) -> Description | None:
    """Return a description, None if the library has no optimized implementation.

    Implementations named ``ref`` are unoptimized and slower than NumPy, except those in
    ``plain``. Implementations whose name starts with ``avoid`` are used only if there
    is no other; those for which ``is_wrong`` is true are never used. ``faster`` maps
    the name of the library's choice to that of an implementation that replaces it if it
    is offered.
    """
    try:
        description = Description(api, create, *args, post=post, scalings=scalings)
        while is_wrong is not None and is_wrong(description.implementation):
            if not description.next():
                return None
        if avoid is not None and description.implementation.startswith(avoid):
            other = Description(api, create, *args, post=post)
            if other.next() and not other.implementation.startswith("ref"):
                return other
        name = None if faster is None else faster(description.implementation)
        if name is not None:
            other = Description(api, create, *args, post=post, scalings=scalings)
            if other.advance_to(name):
                return other
    except OneDnnError as error:
        if error.status in NOT_OFFERED:
            return None
        raise
    return (
        None
        if description.implementation.startswith("ref") and not plain
        else description
    )


class Prepared:
    """A primitive that runs on given addresses, for use by a single thread.

    The addresses are those of ``operands``, in order. With ``alone`` it runs on the
    calling thread, as when it was described: for little work waking other threads takes
    longer than the work.
    """

    __slots__ = (
        *("_args", "_count", "_execute", "_owned", "_places", "_point"),
        *("_primitive", "_restore_threads", "_set_threads", "_stream"),
        *("alone", "description", "operands"),
    )

    def __init__(
        self,
        description: Description,
        operands: Operands,
        scratch: Scratch,
        alone: bool = False,
    ) -> None:
        api = description.api
        self.description, self.operands = description, operands
        primitive = Handle(api, "primitive", "primitive_create", description.handle)
        memories = [
            Handle(api, "memory", "memory_create", descriptor, api.engine, None)
            for _, descriptor in operands
        ]
        self._places = tuple(memory.value for memory in memories)
        kinds = [kind for kind, _ in operands]
        size = api.size_of(description.descriptor(SCRATCHPAD_MD))
        if size:
            memories.append(scratch.memory(description.descriptor(SCRATCHPAD_MD), size))
            kinds.append(SCRATCHPAD)
        self._owned, self._primitive = (primitive, memories), primitive.value
        self._count = len(kinds)
        self._args = (ExecArg * len(kinds))(
            *(
                ExecArg(kind, memory.value)
                for kind, memory in zip(kinds, memories, strict=True)
            )
        )
        self._execute, self._point = api.execute, api.point
        self._stream = api.stream
        self.alone = alone
        self._set_threads = api.set_threads if alone else None
        self._restore_threads = api.restore_threads

    def run(self, *addresses: int) -> None:
        """Compute on the operands that start at ``addresses``.

        Raises:
            OneDnnError: the execution fails.
        """
        notes = noting()
        if notes is not None:
            notes.execute(self, addresses)
            return
        point = self._point
        for memory, address in zip(self._places, addresses, strict=True):
            point(memory, address)
        set_threads = self._set_threads
        if set_threads is not None:
            set_threads(1)
        status = self._execute(self._primitive, self._stream, self._count, self._args)
        if set_threads is not None:
            self._restore_threads()
        if status:
            raise OneDnnError("primitive_execute", status)

    def fixed(self, addresses: tuple[int, ...], scratch: Scratch) -> "Fixed":
        """Return the computation bound to these addresses, in new memory objects."""
        api = self.description.api
        memories = [
            Handle(api, "memory", "memory_create", descriptor, api.engine, address)
            for (_, descriptor), address in zip(self.operands, addresses, strict=True)
        ]
        kinds = [kind for kind, _ in self.operands]
        size = api.size_of(self.description.descriptor(SCRATCHPAD_MD))
        if size:
            lent = self.description.descriptor(SCRATCHPAD_MD)
            memories.append(scratch.memory(lent, size))
            kinds.append(SCRATCHPAD)
        pairs = zip(kinds, memories, strict=True)
        args = (ExecArg * len(kinds))(*(ExecArg(k, m.value) for k, m in pairs))
        where = (c_void_p(self._primitive), c_void_p(api.stream), c_int(len(kinds)))
        call = partial(api.execute_bare, *where, c_void_p(addressof(args)))
        places = tuple(memory.value for memory in memories[: len(addresses)])
        name = self.description.implementation
        return Fixed(call, self.alone, places, (self, memories, args), name)


class Ready:
    """The base class of primitives for a form of operands."""

    __slots__ = ("_prepared",)

    def __init__(self, prepared: Prepared) -> None:
        self._prepared = prepared

    @property
    def implementation(self) -> str:
        """Return the library's name of the implementation."""
        return self._prepared.description.implementation


class Fixed(NamedTuple):
    """A primitive bound to memory: ``call`` computes, and returns a status.

    ``alone`` means single-threaded; ``places`` are the memory objects of its operands;
    ``owned`` lives as long as the call does. ``implementation`` is the library's name
    of its code.
    """

    call: Callable[[], int]
    alone: bool
    places: tuple[int, ...]
    owned: Any
    implementation: str
