"""Code in which a word was changed: refused with an error of ours, or followed."""

import re
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings, strategies as st

from burn_import.torchscript import read
from burn_ir import ModelError
from tests.importer.script_files import example, net

CODE = """
y = torch.exp(x)
v = torch.slice(y, 1, 0, 2)
_0 = torch.mul_(v, 3)
outs = annotate(List[Tensor], [])
for i in range(torch.size(x, 0)):
  _1 = torch.append(outs, torch.select(x, 0, i))
if bool(torch.gt(torch.sum(y), 0)):
  z, n = torch.relu(y), 2
else:
  z0 = torch.neg(y)
  z, n = torch.mul(z0, 3), 5
going = True
while going:
  z1 = torch.mul(z, 2)
  going0 = bool(torch.lt(torch.sum(z1), 20))
  going, z = going0, z1
a, b, = torch.split(torch.cat([torch.stack(outs), z], 0), 2)
d = {"a": torch.add(a, n, alpha=2), "b": b}
return (d["a"], torch.reshape(d["b"], [-1, int(ops.prim.NumToTensor(3))]))
"""
WORDS = re.findall(r'\w+(?:\.\w+)*|"[^"]*"|\s+|[^\w\s]', CODE)
OTHERS = (
    *("x", "y", "None", "True", "-1", "0", "1", "3", "2.5", "9223372036854775807"),
    *("[]", "[1, 2]", "[x]", '"a"', "self", "torch", "torch.size(x)", "{}", "inf"),
    *("uninitialized(Tensor)", "CONSTANTS.c0", "(x, y)", 'torch.device("cpu")'),
    *("bool(x)", "int(x)", "self.training", "ops.prim.dtype(x)", "range(2)", "x.y"),
    *("torch.topk(x, 1)", "torch.chunk(x, 2)", "torch.max(x, 1)", "torch.unbind(x)"),
    *("torch.where(x)", "torch.arange(x)", "torch.lstm(x, x)", "torch.item(x)"),
)
CHANGES = st.lists(
    st.tuples(st.integers(0, len(WORDS) - 1), st.sampled_from(("", *OTHERS))),
    min_size=1,
    max_size=4,
)


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(changes=CHANGES, is_traced=st.booleans())
def test_changed_code_is_refused_or_followed(
    changes: list[tuple[int, str]], is_traced: bool
) -> None:
    words = list(WORDS)
    for place, word in changes:
        words[place] = word
    inputs = [example("Float", 2, 3)] if is_traced else []
    with tempfile.TemporaryDirectory() as folder:
        path = net("".join(words), *inputs).saved(Path(folder))
        try:
            graph = read(path, {} if is_traced else {"x": ("batch", 3)}).graph
        except ModelError as error:
            assert all(problem.message for problem in error.problems)
        else:
            assert graph.outputs


def test_unchanged_code_is_followed(tmp_path: Path) -> None:
    path = net("".join(WORDS), example("Float", 2, 3)).saved(tmp_path)
    assert len(read(path).graph.outputs) == 2
