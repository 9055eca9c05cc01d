"""Packed sequences of different lengths for recurrent layers.

Packed data are also computed as tensors here; recurrent layers read the padded
sequences they come from instead, so that the packing becomes dead code.
"""

from collections.abc import Sequence
from dataclasses import replace

from burn.dtypes import name_of
from burn_import.frontends.torch_export.aten.nn.rnn import (
    GRU,
    LSTM,
    RNN_RELU,
    RNN_TANH,
    Kind,
    Rate,
    Stack,
    step_mask,
    swap_time_and_batch,
)
from burn_import.frontends.torch_export.builder import (
    BOOL,
    INT32,
    INT64,
    Builder,
    Packed,
    Value,
)
from burn_import.frontends.torch_export.registry import rule
from burn_ir import InvalidModel, UnsupportedModel


def packed_steps(g: Builder, of: Packed) -> Value:
    """Return the steps [count, features] of all sequences without padding, by time."""
    where = g.at(INT64).op("NonZero", step_mask(g, of))
    rows = g.at(INT64).op("Transpose", where, perm=(1, 0))
    data = g.op("GatherND", of.padded, rows)
    g.out.packed[data.name] = of
    return data


def largest_length(g: Builder, of: Packed) -> Value:
    """Return the largest length, as a vector of one element."""
    return g.at(INT64).op("ReduceMax", of.lengths, [0])


@rule("aten._pack_padded_sequence.default")
def pack_padded_sequence(
    g: Builder, input: Value, lengths: Value, batch_first: bool
) -> tuple[Value, Value]:
    """Return the packed steps, and the number of sequences at each time."""
    if lengths.dtype != INT64:
        name = name_of(lengths.dtype)
        raise InvalidModel(f"expected lengths of int64, got {name}")
    count = lengths
    of = Packed(swap_time_and_batch(g, input) if batch_first else input, count)
    whole = g.at(INT64)
    sizes = whole.op("ReduceSum", whole.cast(step_mask(g, of)), [1], keepdims=0)
    ends = whole.constant([0]), largest_length(g, of)
    return packed_steps(g, of), whole.op("Slice", sizes, *ends)


def source(g: Builder, data: Value) -> Packed:
    """Return the padded sequences that packed data come from.

    Raises:
        UnsupportedModel: the data are not the result of packing or a layer.
    """
    if data.name not in g.out.packed:
        raise UnsupportedModel(
            "expected packed sequences as they were packed, or as a recurrent layer "
            "returned them"
        )
    return g.out.packed[data.name]


@rule("aten._pad_packed_sequence.default")
def pad_packed_sequence(
    g: Builder,
    data: Value,
    batch_sizes: Value,
    batch_first: bool,
    padding_value: float,
    total_length: int | Value,
) -> tuple[Value, Value]:
    """Return sequences padded to the longest one, and their lengths.

    A ``total_length`` that a trace computes is at most the length that was packed.
    """
    of = source(g, data)
    if isinstance(total_length, Value):
        end = g.ints(total_length)
    elif total_length <= 0:
        end = largest_length(g, of)
    else:
        end = g.ints(total_length)
    mask = g.at(BOOL).op("Unsqueeze", step_mask(g, of), [2])
    sequence = g.op("Where", mask, of.padded, g.cast(padding_value))
    extent = g.extent(of.padded, 0)
    if isinstance(total_length, int) and total_length > 0 and extent != total_length:
        whole = g.at(INT64)  # a negative count removes nothing
        gap = whole.op("Sub", total_length, extent)
        sequence = g.op("Pad", sequence, g.ints([0, gap]), g.cast(padding_value), [0])
    else:
        sequence = g.op("Slice", sequence, [0], end, [0])
    return swap_time_and_batch(g, sequence) if batch_first else sequence, of.lengths


def layers(
    g: Builder,
    kind: Kind,
    data: Value,
    states: Sequence[Value],
    stack: tuple[Sequence[Value], bool, int, bool],
    rate: Rate,
) -> Sequence[Value]:
    """Return the results of recurrent layers, the first of them packed again."""
    of = source(g, data)
    lengths = g.cast(of.lengths, INT32)
    run = Stack(g, kind, *stack, lengths=lengths, rate=rate)
    padded, *last = run.run(of.padded, states, False)
    whole = replace(padded, dims=of.padded.dims)
    return [packed_steps(g, Packed(whole, of.lengths)), *last]


@rule("aten.lstm.data")
def lstm(
    g: Builder,
    data: Value,
    batch_sizes: Value,
    hx: Sequence[Value],
    params: Sequence[Value],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
) -> Sequence[Value]:
    stack = (params, has_biases, num_layers, bidirectional)
    return layers(g, LSTM, data, hx, stack, Rate(dropout, train))


def single(kind: Kind, name: str) -> None:
    """Register the rule of a layer with one state."""

    def apply(
        g: Builder,
        data: Value,
        batch_sizes: Value,
        hx: Value,
        params: Sequence[Value],
        has_biases: bool,
        num_layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
    ) -> Sequence[Value]:
        stack = (params, has_biases, num_layers, bidirectional)
        return layers(g, kind, data, [hx], stack, Rate(dropout, train))

    rule(f"aten.{name}.data")(apply)


single(GRU, "gru")
single(RNN_TANH, "rnn_tanh")
single(RNN_RELU, "rnn_relu")
