"""Loops: a model that walks, collects, scans and keeps a list."""

import numpy as np
import onnx
from onnx import numpy_helper, parser

from tests.golden.build.case import Case, Feeds

TEXT = """
<ir_version: 8, opset_import: ["" : 18], producer_name: "golden">
loops (float[batch, time, 4] x, float[batch, 4] state, int64 rounds, float limit)
  => (float[batch, 4] last, float[steps, batch, 4] walk, float[time, batch, 4] scanned,
      float[parts, 4] listed)
<bool true = {1}, int64 one = {1}>
{
  halved = Loop (, true, state) <body = shrink
    (int64 i, bool going, float[batch, 4] value)
    => (bool more, float[batch, 4] smaller) {
      half = Constant <value_float = 0.5> ()
      smaller = Mul (value, half)
      size = ReduceL2 <keepdims = 0> (smaller)
      more = Greater (size, limit)
    }>
  last, walk = Loop (rounds, true, halved) <body = step
    (int64 i, bool going, float[batch, 4] hidden)
    => (bool same, float[batch, 4] following, float[batch, 4] kept) {
      same = Identity (going)
      product = MatMul (hidden, weight)
      sum = Add (product, bias)
      number = Cast <to = 1> (i)
      moved = Add (sum, number)
      following = Tanh (moved)
      kept = Identity (following)
    }>
  total, scanned = Scan <num_scan_inputs = 1, scan_input_axes = [1], body = add
    (float[batch, 4] before, float[batch, 4] frame)
    => (float[batch, 4] after, float[batch, 4] row) {
      after = Add (before, frame)
      row = Sub (after, last)
    }> (halved, x)
  frames = SplitToSequence <axis = 0> (walk)
  mapped = SequenceMap <body = flat (float[1, batch, 4] frame) => (float[batch, 4] y) {
      shape = Constant <value_ints = [-1, 4]> ()
      flattened = Reshape (frame, shape)
      y = Sigmoid (flattened)
    }> (frames)
  longer = SequenceInsert (mapped, total)
  listed = ConcatFromSequence <axis = 0> (longer)
}
"""


def loops() -> Case:
    """A while loop, a for loop that collects, a scan and a list that grows."""
    rng = np.random.default_rng(14)
    proto = parser.parse_model(TEXT)
    for name, shape in (("weight", (4, 4)), ("bias", (4,))):
        array = rng.standard_normal(shape, np.float32) / 2
        proto.graph.initializer.append(numpy_helper.from_array(array, name))
    onnx.checker.check_model(proto)
    feeds: tuple[Feeds, ...] = tuple(
        {
            "x": rng.standard_normal((batch, time, 4), np.float32),
            "state": rng.standard_normal((batch, 4), np.float32),
            "rounds": np.array(rounds, np.int64),
            "limit": np.array(limit, np.float32),
        }
        for batch, time, rounds, limit in ((2, 3, 4, 0.3), (1, 5, 2, 2.0))
    )
    return Case(proto, feeds)
