"""Recurrent layers in training, and their gradients, with oneDNN."""

from functools import partial
from typing import Any

import numpy as np

from burn.backend.cpu.onednn.binding.api import (
    ARGUMENT_MD,
    BACKWARD,
    BIAS,
    DIFF_BIAS,
    DIFF_DST,
    DIFF_DST_1,
    DIFF_DST_2,
    DIFF_SRC,
    DIFF_SRC_1,
    DIFF_SRC_2,
    DIFF_WEIGHTS,
    DIFF_WEIGHTS_1,
    DST,
    DST_1,
    DST_2,
    SRC,
    SRC_1,
    SRC_2,
    TRAINING,
    WEIGHTS,
    WEIGHTS_1,
    WORKSPACE,
    WORKSPACE_MD,
    Api,
)
from burn.backend.cpu.onednn.binding.cache import Primitives
from burn.backend.cpu.onednn.binding.capture import compact, do, empty
from burn.backend.cpu.onednn.binding.engine import Session
from burn.backend.cpu.onednn.binding.memory import Array, address, any_layout
from burn.backend.cpu.onednn.binding.prepared import (
    Description,
    Operands,
    Prepared,
    described,
)
from burn.backend.cpu.onednn.binding.scratch import Block
from burn.backend.cpu.onednn.binding.weights import Weights
from burn.backend.cpu.onednn.kernels.rnn.recurrent_primitives import (
    Form,
    forward_description,
    operands_of,
    or_zeros,
    rows_of,
    weights_of,
)
from burn.ops.recurrent_gradients import LayerOperands

_BYTE = np.dtype(np.uint8)


class Training:
    """A prepared layer and its gradient.

    The layer leaves intermediate results for its gradient in a oneDNN workspace.
    """

    __slots__ = (
        *("_back", "_back_weights", "_form", "_front"),
        *("_reorders", "_sizes", "_space", "_weights"),
    )

    def __init__(
        self,
        session: Session,
        primitives: Primitives,
        form: Form,
        descriptions: tuple[Description, Description],
    ) -> None:
        api, (front, back) = primitives.api, descriptions
        kinds = (WEIGHTS, WEIGHTS_1, BIAS)

        def weights(description: Description) -> list[Weights]:
            each = (session, primitives, form, description)
            return [weights_of(*each, kind) for kind in kinds]

        self._form = form
        self._weights, self._back_weights = weights(front), weights(back)
        space = front.descriptor(WORKSPACE_MD)
        self._space = api.size_of(space)
        ins, outs = _kinds(form)
        which = [*ins, *outs]
        self._front = _prepare(primitives, front, which, space)
        firsts, lasts = (DIFF_SRC_1, DIFF_SRC_2), (DIFF_DST, DIFF_DST_1, DIFF_DST_2)
        which += lasts[: len(outs)]
        slopes = (DIFF_WEIGHTS, DIFF_WEIGHTS_1, DIFF_BIAS)
        which += [*slopes, DIFF_SRC, *firsts[: form.cell.states]]
        self._back = _prepare(primitives, back, which, space)
        layouts = [back.descriptor(ARGUMENT_MD, kind) for kind in slopes]
        self._sizes = [api.size_of(layout) for layout in layouts]
        self._reorders = [
            None if api.same(layer, layout) else primitives.reorder(layout, layer)
            for layout, layer in zip(
                layouts, _weight_gradient_handles(api, form), strict=True
            )
        ]

    @property
    def implementation(self) -> str:
        return f"recurrent {self._front.description.implementation}, with gradients"

    def run(self, layer: LayerOperands, space: Block) -> tuple[Array, ...]:
        """Return all outputs [time, directions, batch, hidden] and the last states."""
        form = self._form
        addresses, _owned = self._addresses(layer, self._weights)
        every = empty((form.time, form.batch, form.directions, form.hidden))
        lasts = [empty(form.state) for _ in layer.states]
        self._front.run(*addresses, *map(address, (every, *lasts)), space.address)
        return every.transpose(0, 2, 1, 3), *lasts

    def workspace(self) -> Block:
        """Return memory for the workspace."""
        return Block(self._space)

    def back(
        self,
        grads: tuple[Array | None, ...],
        outs: tuple[Array, ...],
        layer: LayerOperands,
        space: Block,
    ) -> list[Array]:
        """Return the gradients of x, w, r, biases and the present states.

        ``grads`` are those of ``outs``; those of biases are always computed.
        """
        form = self._form
        addresses, _owned = self._addresses(layer, self._back_weights)
        shape = (form.time, form.directions, form.batch, form.hidden)
        shapes = [shape, *(len(outs) - 1) * [form.state]]
        ends = [*zip(outs, grads, strict=True)]
        first, *rest = [
            [or_zeros(part, shape) if part is None else part for part in pair]
            for pair, shape in zip(ends, shapes, strict=True)
        ]
        pairs = [[compact(part.transpose(0, 2, 1, 3)) for part in first]]
        pairs += [[compact(part) for part in pair] for pair in rest]
        flat = [pair[k] for k in range(2) for pair in pairs]
        slopes = [empty((size,), _BYTE) for size in self._sizes]
        for slope in slopes:  # the library adds to them
            do(partial(slope.fill, 0))
        of_x = empty((form.time, form.batch, form.inputs))
        of_states = [empty(form.state) for _ in layer.states]
        targets = map(address, (*slopes, of_x, *of_states))
        self._back.run(*addresses, *map(address, flat), *targets, space.address)
        return [of_x, *self._of_weights(slopes), *of_states]

    def _addresses(
        self, layer: LayerOperands, weights: list[Weights]
    ) -> tuple[list[int], list[Array]]:
        """Return the addresses of the operands, and arrays that own some of them."""
        form, (*products, shift) = self._form, weights
        firsts = [or_zeros(state, form.state) for state in layer.states]
        zeros = or_zeros(None, form.bias) if layer.b is None else None
        x = compact(layer.x)
        pairs = zip(products, (layer.w, layer.r), strict=True)
        addresses = [address(x), *(each.place(part) for each, part in pairs)]
        addresses.append(shift.place(layer.b) if zeros is None else address(zeros))
        return [*addresses, *map(address, firsts)], [x, zeros, *firsts]

    def _of_weights(self, slopes: list[Array]) -> list[Array]:
        """Return gradients of weights and biases in ONNX's layout and gate order."""
        form, gradients = self._form, []
        count, width, cell = form.directions, form.hidden, form.cell
        widths, sums = (form.inputs, width, 1), (cell.gates, cell.gates, cell.biases)
        for k, (slope, reorder) in enumerate(zip(slopes, self._reorders, strict=True)):
            shape = (count, len(sums[k]), width, widths[k])
            if reorder is None:
                plain = slope.view(np.float32).reshape(-1)[: int(np.prod(shape))]
            else:
                plain = empty(shape)
                reorder.run(address(slope), address(plain))
            plain = plain.reshape(shape)
            parts = sum(map(len, sums[k]))
            target = empty((count, parts, width, widths[k]))
            for gate, each in enumerate(sums[k]):
                for part in each:
                    do(partial(np.copyto, target[:, part], plain[:, gate]))
            flat = target.reshape(count, parts * width, widths[k])
            gradients.append(flat if k < 2 else flat[..., 0])
        return gradients


def _kinds(form: Form) -> tuple[list[int], list[int]]:
    """Return the operands and the results of a layer."""
    states = form.cell.states
    firsts, lasts = (SRC_1, SRC_2)[:states], (DST_1, DST_2)[:states]
    return [SRC, WEIGHTS, WEIGHTS_1, BIAS, *firsts], [DST, *lasts]


def _weight_gradient_handles(api: Api, form: Form) -> list[Any]:
    """Return the descriptors of gradients of weights and biases in ONNX's layout."""
    count, width, gates = form.directions, form.hidden, len(form.cell.gates)
    shapes = ((1, count, n, gates, width) for n in (form.inputs, width))
    return [*(rows_of(api, s, last=2) for s in shapes), rows_of(api, (1, *form.bias))]


def _prepare(
    primitives: Primitives, description: Description, kinds: list[int], space: int
) -> Prepared:
    operands: Operands = [
        (kind, description.descriptor(ARGUMENT_MD, kind)) for kind in kinds
    ]
    return primitives.prepared(description, [*operands, (WORKSPACE, space)])


def prepare_training(
    session: Session, primitives: Primitives, form: Form
) -> Training | None:
    """Return a layer of this form with its gradient; None if the library has none."""
    # Without initial states the library adds uninitialized memory to the gradient of r.
    form, api, cell = form._replace(states=True), primitives.api, form.cell
    front = forward_description(api, form, any_layout, TRAINING)
    if front is None:
        return None
    back = described(
        *(api, f"{cell.name}_backward", api.engine, BACKWARD),
        *(() if cell.kind is None else (cell.kind,)),
        *(form.direction, *operands_of(api, form, any_layout)),
        *(*operands_of(api, form, any_layout), 0),
        *(() if cell.kind is None else (0.0, 0.0)),
        front.handle,
        plain=True,
    )
    if back is None:
        return None
    return Training(session, primitives, form, (front, back))
