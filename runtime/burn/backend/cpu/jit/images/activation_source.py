"""The LLVM IR of piecewise linear activations of registers."""

_NUMBERS = ("low", "high", "slope", "offset", "gate")
_NUMBER = """\
  %act.{name}.at = getelementptr float, ptr %limits, i64 {place}
  %act.{name}.number = load float, ptr %act.{name}.at"""
_VECTOR = """\
  %act.{name}.one = insertelement {kind} poison, float %act.{name}.number, i64 0
  %act.{name} = shufflevector {kind} %act.{name}.one, {kind} poison, \
<{lanes} x i32> zeroinitializer"""
_SCALED = """\
  %act.scaled{i} = fmul {kind} %{operand}{i}, %act.slope
  %act.moved{i} = fadd {kind} %act.scaled{i}, %act.offset"""
_CLIPPED = """\
  %act.is.low{i} = fcmp olt {kind} %{start}{i}, %act.low
  %act.above{i} = select <{lanes} x i1> %act.is.low{i}, {kind} %act.low, \
{kind} %{start}{i}
  %act.is.high{i} = fcmp ogt {kind} %act.above{i}, %act.high
  %{end}{i} = select <{lanes} x i1> %act.is.high{i}, {kind} %act.high, \
{kind} %act.above{i}"""
_GATED = """\
  %act.product{i} = fmul {kind} %{operand}{i}, %act.inner{i}
  %last{i} = select i1 %act.is.gated, {kind} %act.product{i}, {kind} %act.inner{i}"""


def activation_source(operand: str, count: int, lanes: int, is_clip: bool) -> str:
    """Return the instructions for ``%last0`` etc. from ``%{operand}0`` etc.

    ``%limits`` points to the numbers of a piecewise linear function, of which a clip
    reads the first two.
    """
    names = {"kind": f"<{lanes} x float>", "lanes": lanes, "operand": operand}
    read = _NUMBERS[:2] if is_clip else _NUMBERS
    lines = [_NUMBER.format(name=name, place=n) for n, name in enumerate(read)]
    lines += [_VECTOR.format(name=name, **names) for name in read[:4]]
    if not is_clip:
        lines.append("  %act.is.gated = fcmp one float %act.gate.number, 0.0")
    ends = {"start": operand, "end": "last"}
    if not is_clip:
        ends = {"start": "act.moved", "end": "act.inner"}
    for i in range(count):
        if not is_clip:
            lines.append(_SCALED.format(i=i, **names))
        lines.append(_CLIPPED.format(i=i, **names, **ends))
        if not is_clip:
            lines.append(_GATED.format(i=i, **names))
    return "\n".join(lines)
