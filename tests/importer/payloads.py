"""Strings that would do harm if they ever were more than strings."""

from hypothesis import strategies as st

TOUCH = "__import__('pathlib').Path('pwned').touch()"
PAYLOADS = [
    f"a\n{TOUCH}\n#",
    f"a\r{TOUCH}\r#",
    f'a"""\n{TOUCH}\n"""',
    f"'''\n{TOUCH}\n'''",
    TOUCH,
    f"x, metaclass={TOUCH}",
    f"Net({TOUCH})",
    f"nearest'); {TOUCH}; ('",
    f'nearest"); {TOUCH}; ("',
    "coding: utf-7 +AAo-" + TOUCH.replace("(", "+ACg-"),
    "-*- coding=utf-7 -*-\u2028" + TOUCH,
    "ends with a backslash\\",
    "nul\0inside",
    "\ud800 lone",
    "class",
    "__class__",
    "a.__class__.__init__.__globals__",
    "\u202etxet\u202c",
    "ｅｖａｌ(1)",
    "fmt: off type: ignore noqa nosec",
    "{{ 7*7 }}{% raw %}",
    "%(x)s {x} ${x}",
    "\x1b[2J\x9b31m",
]
AWKWARD = [
    *("self.self", "0.1", "load.weight", "to.weight", "count", "cls", "nn", "ops.x"),
    *("burn", "WEIGHTS", "weights", "a.b", "a/b", "a_b", "a.b.0", "a.b.1", "a.b.0.c"),
    *("None", "True", "print", "match", "_", "__", "9", "1.weight", "x", "y", "size"),
    *("Tensor", "Path", "index", "value", "state_dict.weight", "forward", "children"),
    *("é", "ß", "ﬁ", "²", "x²", "K", "名前"),
    *("self", "super", "math.inf", "batch", "dim", "input"),
]
LONG = ["a" * 10_000, "a." * 5_000, "/" * 9_000, "a/" * 3_000 + "b", "9." * 500]
strings = st.one_of(
    st.integers(0, len(LONG) - 1).map(lambda number: LONG[number]),
    st.sampled_from(PAYLOADS + AWKWARD),
    st.text(min_size=1, max_size=40),
    st.text(st.characters(), min_size=1, max_size=20),  # lone surrogates too
    st.lists(st.sampled_from(PAYLOADS + AWKWARD), min_size=2, max_size=3).map(".".join),
)
