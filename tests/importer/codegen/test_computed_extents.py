"""Extents that modules compute: behind strided convolutions, and of outer values."""

from pathlib import Path

import numpy as np
import pytest

from tests.importer.looped import check, normal
from tests.importer.structure.scoped_net import ScopedNet, check_import


def image_net(width: int | str) -> tuple[ScopedNet, str]:
    """Return a network of images behind a convolution of stride 2, and the result."""
    net = ScopedNet()
    x = net.input("image", "batch", 3, "height", width)
    weight = net.weight("stem.weight", 4, 3, 3, 3)
    window = {"kernel_shape": [3, 3], "pads": [1] * 4, "strides": [2, 2]}
    return net, net.run("Conv", "stem", x, weight, **window)


def extent(net: ScopedNet, scope: str, x: str, axis: int) -> str:
    """Return the extent of ``axis`` as a vector of one element."""
    at = net.stored(f"at{axis}", np.array([axis]))
    return net.run("Gather", scope, net.run("Shape", scope, x), at)


@pytest.mark.parametrize("width", [6, "width"])
def test_products_of_strided_extents_are_numbers(
    width: int | str, tmp_path: Path
) -> None:
    """The module has none of the extents of the image."""
    net, x = image_net(width)
    y = net.run("Tanh", "attn", net.conv("attn.proj", x, 4, 4))
    sides = [extent(net, "attn", y, axis) for axis in (2, 3)]
    count = net.run("Mul", "attn", *sides)
    one = net.stored("one", np.float32(0.5))
    spread = net.run("Expand", "attn", one, count)
    rows = net.stored("rows", np.array([0, 4, -1]))
    y = net.run("Reshape", "attn", y, rows)
    imported = check_import(tmp_path, net.model(y, spread), net.feeds(5))
    assert "ops.array(" not in imported.source and "ops.concat(" not in imported.source
    expected = "size * 3" if width == 6 else "size2 * size"
    assert f"self.one.expand({expected})" in imported.source


def test_an_extent_of_another_value_is_read_from_it(tmp_path: Path) -> None:
    """The height of the image is no argument; the image itself is."""
    net, x = image_net("width")
    height = extent(net, "", "image", 2)
    y = net.conv("decoder.proj", x, 4, 4)
    one = net.stored("one", np.float32(0.5))
    spread = net.run("Expand", "decoder", one, height)
    y = net.run("ReduceMean", "decoder", y, keepdims=0)
    y = net.run("Add", "decoder", net.run("Tanh", "decoder", y), spread)
    imported = check_import(tmp_path, net.model(y), net.feeds(5))
    assert "self.decoder(self.stem(image), image)" in imported.source
    assert "ops.array(" not in imported.source


@pytest.mark.parametrize("count", [4, 6])
def test_a_table_of_positions_is_computed(count: int, tmp_path: Path) -> None:
    """A few positions are written as numbers; more as a range and a sum."""
    numbers = ", ".join(map(str, range(1, count + 1)))
    text = f"""agraph (float[seq, 3] x) => (float[k, 1, 3] y) {{
    back = Constant <value = int64[{count}, 1] {{{numbers}}}> ()
    shape = Shape (x)
    zero = Constant <value = int64 {{0}}> ()
    seq = Gather (shape, zero)
    rows = Sub (seq, back)
    y = Gather (x, rows)
    }}"""
    feeds = [{"x": normal(size, 3, seed=size)} for size in (6, 9)]
    source = check(tmp_path, text, *feeds)
    assert ("seq - 1" in source) == (count == 4)


@pytest.mark.parametrize("more", [1, -1, 3])
def test_a_number_more_than_a_quotient_is_read_from_it(
    more: int, tmp_path: Path
) -> None:
    """The sum of both is no other quotient: the input's extent may not be at hand."""
    text = f"""agraph (float[1, 2, n] x) => (float[1, 2, p] y, float[q] r) {{
    more = Constant <value = int64[1] {{{more}}}> ()
    y = Conv <strides = [2], pads = [1, 1]> (x, w)
    length = Shape <start = 2, end = 3> (y)
    shape = Add (length, more)
    r = ConstantOfShape (shape)
    }}"""
    feeds = [{"x": normal(1, 2, size, seed=size)} for size in (4, 7, 9)]
    check(tmp_path, text, *feeds, weights={"w": normal(2, 2, 3, seed=0)})


NARROW = """
agraph (float[n, m] x) => (int32[k] y, int32 z)
<int32 zero = {0}, int32 one = {1}, int64 axis = {1}>
{
  shape = Shape (x)
  narrow = Cast <to = 6> (shape)
  m = Gather (narrow, axis)
  y = Range (zero, m, one)
  z = Mul (m, m)
}
"""


def test_extents_of_inputs_keep_their_dtype(tmp_path: Path) -> None:
    """TensorFlow's are int32, and so is what is computed from them."""
    source = check(tmp_path, NARROW, {"x": normal(2, 3)}, {"x": normal(4, 5)})
    assert "ops.arange(m, dtype=burn.int32)" in source
