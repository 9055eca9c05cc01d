"""Products of one row and a constant matrix as machine code.

Such a product takes the time to read the matrix. It is packed in panels of some
columns, which are read from the first byte to the last: on a core of an AMD EPYC that
takes a third of the time of oneDNN's code, which reads several rows at once.
"""

from functools import cache

import numpy as np

from burn.backend.cpu.jit.images.activation_source import activation_source
from burn.backend.cpu.jit.machine import machine
from burn.backend.cpu.jit.operands import RowOperands
from burn.backend.cpu.jit.source import Kernel
from burn.backend.cpu.jit.writer import ENTRIES, EXPLICIT
from burn.backend.cpu.onednn.binding.memory import address
from burn.ops.support import Array
from burn.record.memory_advice import forget

#: The registers of a panel, by the floats of a register: their sums hide the latency of
#: an addition.
_REGISTERS = {16: 4, 8: 8, 4: 8}
#: The cost of a weight in additions, if weights come from the L3 cache.
WORK = 2


def row_kernel(given: RowOperands) -> Kernel:
    """Return the kernel of the product of a row and constants, and its epilogue."""
    lanes = machine().floats
    outputs, depth = given.weight.shape
    wide = _REGISTERS[lanes] * lanes
    columns = -(-outputs // lanes) * lanes
    panels = _packed(given.weight, wide, columns)
    forget(given.weight)  # as it was in its file
    shift = np.zeros(columns, np.float32)
    shift[:outputs] = 0 if given.bias is None else given.bias
    parts = -(-outputs // wide)
    arrays = (given.x, panels, shift, given.residual, given.out, given.activation)
    words = (
        *(parts, *(0 if array is None else address(array) for array in arrays)),
        *(depth, outputs),
    )
    work = WORK * given.weight.size
    text = _text(lanes, _REGISTERS[lanes])
    return Kernel(text, (), words, work, parts, owned=arrays)


def _packed(weight: Array, wide: int, columns: int) -> Array:
    """Return the transposed matrix in panels of ``wide`` columns one after the other.

    The last panel is narrower; there are zeros up to ``columns``.
    """
    outputs, depth = weight.shape
    packed = np.zeros(columns * depth, np.float32)
    for start in range(0, columns, wide):
        width = min(wide, columns - start)
        rows = weight[start : start + width]
        panel = packed[start * depth :][: width * depth].reshape(depth, width)
        panel[:, : len(rows)] = rows.T
    return packed


@cache
def _text(lanes: int, registers: int) -> str:
    """Return the source for panels of so many registers of ``lanes`` floats."""
    counts = range(1, registers + 1)
    choices = "\n".join(f"    i64 {count}, label %use{count}" for count in counts)
    uses = "\n".join(
        f"use{count}:\n  call void @sums{count}({_ARGUMENTS})\n  br label %next"
        for count in counts
    )
    part = _PART.format(
        wide=lanes * registers,
        lanes=lanes,
        most=lanes - 1,
        registers=registers,
        choices=choices,
        uses=uses,
    )
    entries = ENTRIES.format(
        loads="  %parts = load i64, ptr %data", given="ptr %data, "
    )
    kind, vector, mask = f"<{lanes} x float>", f"v{lanes}f32", f"<{lanes} x i1>"
    declared = [
        f"declare {kind} @llvm.fmuladd.{vector}({kind}, {kind}, {kind})",
        f"declare {kind} @llvm.masked.load.{vector}.p0(ptr, i32, {mask}, {kind})",
        f"declare void @llvm.masked.store.{vector}.p0({kind}, ptr, i32, {mask})",
        "declare i64 @llvm.umin.i64(i64, i64)",
    ]
    functions = [_sums(count, lanes) for count in counts]
    return "\n".join([EXPLICIT, *functions, part, entries, *declared, ""])


_PARAMETERS = (
    "ptr %x, ptr %w, ptr %bias, ptr %res, ptr %out, ptr %limits, i64 %depth, i64 %left"
)
_ARGUMENTS = (
    "ptr %x, ptr %w.p, ptr %bias.p, ptr %res.p, ptr %out.p, ptr %limits, i64 %depth, "
    "i64 %left"
)


def _sums(count: int, lanes: int) -> str:
    """Return the function of a panel of ``count`` registers."""
    names = {
        "kind": f"<{lanes} x float>",
        "integers": f"<{lanes} x i32>",
        "bits": f"<{lanes} x i1>",
        "lanes": lanes,
        "splat": f"<{lanes} x i32> zeroinitializer",
    }
    lines = {
        name: "\n".join(
            template.format(
                v=v,
                first=v * lanes,
                numbers=", ".join(f"i32 {v * lanes + lane}" for lane in range(lanes)),
                **names,
            )
            for v in range(count)
        )
        for name, template in _LINES.items()
    }
    return _SUMS.format(
        count=count,
        parameters=_PARAMETERS,
        activation=activation_source("end", count, lanes, is_clip=False),
        wide=count * lanes,
        **names,
        **lines,
    )


#: The instructions for each register ``v`` of a panel.
_LINES = {
    "biases": """\
  %bias.at{v} = getelementptr float, ptr %bias, i64 {first}
  %start{v} = load {kind}, ptr %bias.at{v}, align 4""",
    "sums": """\
  %sum{v} = phi {kind} [ %start{v}, %entry ], [ %added{v}, %row ]""",
    "products": """\
  %w.at{v} = getelementptr float, ptr %w.c, i64 {first}
  %w{v} = load {kind}, ptr %w.at{v}, align 4
  %added{v} = call {kind} @llvm.fmuladd.v{lanes}f32({kind} %factor, {kind} %w{v}, \
{kind} %sum{v})""",
    "places": """\
  %mask{v} = icmp ult {integers} <{numbers}>, %left.all
  %out.at{v} = getelementptr float, ptr %out, i64 {first}""",
    "others": """\
  %res.at{v} = getelementptr float, ptr %res, i64 {first}
  %other{v} = call {kind} @llvm.masked.load.v{lanes}f32.p0(ptr %res.at{v}, i32 4, \
{bits} %mask{v}, {kind} zeroinitializer)
  %both{v} = fadd {kind} %added{v}, %other{v}""",
    "ends": """\
  %end{v} = phi {kind} [ %added{v}, %finish ], [ %both{v}, %residual ]""",
    "stores": """\
  call void @llvm.masked.store.v{lanes}f32.p0({kind} %last{v}, ptr %out.at{v}, i32 4, \
{bits} %mask{v})""",
}
_SUMS = """\
define internal void @sums{count}({parameters}) noinline {{
entry:
{biases}
  br label %row
row:
  %c = phi i64 [ 0, %entry ], [ %c.next, %row ]
  %w.c = phi ptr [ %w, %entry ], [ %w.next, %row ]
{sums}
  %x.at = getelementptr float, ptr %x, i64 %c
  %number = load float, ptr %x.at
  %one = insertelement {kind} poison, float %number, i64 0
  %factor = shufflevector {kind} %one, {kind} poison, {splat}
{products}
  %w.next = getelementptr float, ptr %w.c, i64 {wide}
  %c.next = add nuw nsw i64 %c, 1
  %c.more = icmp ult i64 %c.next, %depth
  br i1 %c.more, label %row, label %finish
finish:
  %left.narrow = trunc i64 %left to i32
  %left.one = insertelement {integers} poison, i32 %left.narrow, i64 0
  %left.all = shufflevector {integers} %left.one, {integers} poison, {splat}
{places}
  %has.residual = icmp ne ptr %res, null
  br i1 %has.residual, label %residual, label %end
residual:
{others}
  br label %end
end:
{ends}
{activation}
{stores}
  ret void
}}
"""
_PART = """\
define internal void @part(ptr %data, i64 %low, i64 %high) noinline {{
entry:
  %x.at = getelementptr i64, ptr %data, i64 1
  %w.at = getelementptr i64, ptr %data, i64 2
  %bias.at = getelementptr i64, ptr %data, i64 3
  %res.at = getelementptr i64, ptr %data, i64 4
  %out.at = getelementptr i64, ptr %data, i64 5
  %limits.at = getelementptr i64, ptr %data, i64 6
  %depth.at = getelementptr i64, ptr %data, i64 7
  %outputs.at = getelementptr i64, ptr %data, i64 8
  %x = load ptr, ptr %x.at
  %w = load ptr, ptr %w.at
  %bias = load ptr, ptr %bias.at
  %res = load ptr, ptr %res.at
  %out = load ptr, ptr %out.at
  %limits = load ptr, ptr %limits.at
  %depth = load i64, ptr %depth.at
  %outputs = load i64, ptr %outputs.at
  %has.res = icmp ne ptr %res, null
  br label %panel
panel:
  %p = phi i64 [ %low, %entry ], [ %p.next, %next ]
  %column = mul i64 %p, {wide}
  %left = sub i64 %outputs, %column
  %before = mul i64 %column, %depth
  %w.p = getelementptr float, ptr %w, i64 %before
  %bias.p = getelementptr float, ptr %bias, i64 %column
  %out.p = getelementptr float, ptr %out, i64 %column
  %res.moved = getelementptr float, ptr %res, i64 %column
  %res.p = select i1 %has.res, ptr %res.moved, ptr null
  %more = add i64 %left, {most}
  %all = udiv i64 %more, {lanes}
  %count = call i64 @llvm.umin.i64(i64 %all, i64 {registers})
  switch i64 %count, label %next [
{choices}
  ]
{uses}
next:
  %p.next = add i64 %p, 1
  %p.more = icmp ult i64 %p.next, %high
  br i1 %p.more, label %panel, label %exit
exit:
  ret void
}}

"""
