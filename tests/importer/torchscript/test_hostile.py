"""Malicious archives are refused quickly, and nothing is executed."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from burn_import import load
from burn_import.codegen.gate.gate import check_body
from burn_import.frontends.torchscript import read
from burn_import.pipeline import import_model
from burn_ir import ModelError
from tests.importer.pytorch_files import Entry, Name, New, Raw
from tests.importer.script_files import Script, example, module, net, weight
from tests.pace import within

SECONDS = 2
EXPLOIT = "__import__('os').system('touch pwned')"


def refused(script: Script, folder: Path, match: str) -> None:
    """Return if the archive is refused in time."""
    path = script.saved(folder)
    with within(SECONDS), pytest.raises(ModelError, match=match):
        read(path, {"x": (2, 3)})
    assert not list(folder.glob("**/pwned")) and not Path("pwned").exists()


STATEMENTS = {
    "import": ("import os\nreturn x", "a statement of kind Import "),
    "import from": ("from os import system\nreturn x", "kind ImportFrom"),
    "builtin": (f"_0 = {EXPLOIT}\nreturn x", "nothing is called '__import__'"),
    "eval": (f'return eval("{EXPLOIT}")', "nothing is called 'eval'"),
    "attribute": ("return x.__class__.__bases__", "the attribute '__class__'"),
    "getattr": ('return getattr(self, "__class__")', "has no attribute '__class__'"),
    "operator": ("return torch.os.system(x)", "torch.os.system is not supported"),
    "lambda": ("return (lambda: x)()", "kind Lambda"),
    "comprehension": ("return [x for x in x]", "kind ListComp"),
    "walrus": ("return (y := x)", "kind NamedExpr"),
    "format": ('return f"{x}"', "kind JoinedStr"),
    "starred": ("return torch.relu(*x)", r"calls with \*arguments"),
    "delete": ("del x\nreturn x", "kind Delete"),
    "function": ("def f(): pass\nreturn x", "kind FunctionDef"),
    "global": ("global os\nreturn x", "kind Global"),
    "power": ("return torch.pow(9, 999999999)", "64 bits"),
    "shift": ("return torch.__lshift__(1, 999999999999)", "64 bits"),
    "long text": ('return torch.mul("a", 9999999999)', "more than 10000"),
    "long list": ("return torch.mul([1], 9999999999)", "more than 10000"),
    "doubled list": (
        "l = [1]\nfor i in range(99):\n  l = torch.add(l, l)\nreturn l",
        "more than 10000",
    ),
    "extended list": (
        "l = [1]\nfor i in range(99):\n  _0 = torch.extend(l, l)\nreturn l",
        "limit on interpreted steps",
    ),
    "list in itself": ("l = [x]\n_0 = torch.append(l, l)\nreturn l", "got a value of"),
    "dict in itself": ('d = {"a": x}\nd["b"] = d\nreturn d', "got a value of"),
    "tree of lists": (
        "l = [x]\nfor i in range(99):\n  l = [l, l]\nreturn torch.cat(l)",
        "limit on interpreted steps",
    ),
    "endless": ("a = True\nwhile a:\n  pass\nreturn x", "limit on interpreted steps"),
    "long loop": (
        "for i in range(0, 9223372036854775807):\n  pass\nreturn x",
        "limit on interpreted steps",
    ),
    "parts": ("return torch.split(torch.ones([1000000]), 1)", "1000000 parts"),
    "unknown constant": ("return CONSTANTS.c7", "has no constant 'c7'"),
    "wrong arity": ("return (self).forward()", "expected an argument 'x'"),
    "text": ('return "a"', "expected forward to return tensors"),
    "nothing": ("pass", "expected forward to return tensors, got none"),
    "no code": ("return x\0", "expected TorchScript, got SyntaxError"),
    "number": (f"return {'9' * 100_000}", "expected TorchScript, got SyntaxError"),
    "words": ("\n".join(["a = 1"] * 100_000), "words of code"),
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_code_is_never_executed(name: str, tmp_path: Path) -> None:
    forward, match = STATEMENTS[name]
    refused(net(forward), tmp_path, match)


@pytest.mark.parametrize("depth", [100, 1000, 10_000, 60_000])
@pytest.mark.parametrize(
    "form", ["({0}x{1})", "-{0}1", "x{2}", "torch.relu({0}x{1})", "x{3}", "[{0}{1}]"]
)
def test_deep_expressions_end(form: str, depth: int, tmp_path: Path) -> None:
    opening = {"(": "(", "-": "-", "t": "torch.relu(", "[": "["}.get(form[0], "")
    closing = {"(": ")", "t": ")", "[": "]"}.get(form[0], "")
    parts = (opening * depth, closing * depth, ".a" * depth, "[0]" * depth)
    path = net("return " + form.format(*parts)).saved(tmp_path)
    with within(SECONDS):
        try:
            model = read(path, {"x": (2, 3)})
        except ModelError:
            pass
        else:
            assert depth == 100 and len(model.graph.nodes) < 200


@pytest.mark.parametrize(
    "parameter", ["x: a{0}", "x: {1}a", "x: Tensor, y: int={1}1", "x, y: List[Tensor]"]
)
def test_deep_parameters_end(parameter: str, tmp_path: Path) -> None:
    script = net("return x", parameters=parameter.format(".a" * 900, "-" * 900))
    path = script.saved(tmp_path)
    with pytest.raises(ModelError):
        read(path)
    with suppress(ModelError):
        read(path, {"x": (2, 3)})


def methods(result: str, count: int = 40) -> str:
    """Return a class whose every method calls the next one twice."""
    lines = [
        f"  def f{n}(self,\n    x: Tensor) -> Tensor:\n"
        f"    return (self).f{n + 1}((self).f{n + 1}(x, ), )\n"
        for n in range(count)
    ]
    last = f"  def f{count}(self,\n    x: Tensor) -> Tensor:\n    return {result}\n"
    first = (
        "  def forward(self,\n    x: Tensor) -> Tensor:\n    return (self).f0(x, )\n"
    )
    return "class Net(Module):\n" + "".join(lines) + last + first


@pytest.mark.parametrize("result", ["x", "torch.relu(x)"])
def test_calls_that_double_end(result: str, tmp_path: Path) -> None:
    script = Script(module("Net"), {"__torch__.py": methods(result)})
    refused(script, tmp_path, "limit on (interpreted steps|nodes)")


ENDLESS = """
y = torch.reshape(x, [7])
going = True
while going:
  z = torch.mul(torch.add(torch.exp(x), 2), 3)
return y
"""


@pytest.mark.parametrize("inputs", [0, 9])
def test_a_loop_without_end_is_followed_once(inputs: int, tmp_path: Path) -> None:
    # Inputs of unknown type do not multiply the interpretations.
    given = [example("Float", 2, 3, 5, 7)] * inputs
    names = ", ".join(f"x{number}: Tensor" for number in range(1, inputs))
    parameters = ", ".join(filter(None, ("x: Tensor", names)))
    script = net(ENDLESS, *given, parameters=parameters)
    refused(script, tmp_path, "limit on (interpreted steps|nodes)")


def test_a_long_loop_is_followed_a_few_times(tmp_path: Path) -> None:
    # Every extent of the inputs may vary, and each is tried.
    rounds = "y = x\nfor i in range(100):\n  y = torch.exp(torch.exp(y))\n"
    given = [example("Float", *range(2, 9))] * 9
    names = ", ".join(f"x{number}: Tensor" for number in range(1, 9))
    script = net(f"{rounds * 8}return y", *given, parameters=f"x: Tensor, {names}")
    with within(SECONDS):
        assert read(script.saved(tmp_path)).graph.outputs


def test_recursion_ends(tmp_path: Path) -> None:
    refused(net("return (self).forward(x, )"), tmp_path, "nested deeper than 60")


def test_a_module_within_itself_ends(tmp_path: Path) -> None:
    # q: store the module in the memo as 1, h: get it as an attribute of itself.
    code = b"c__torch__\nNet\n)\x81q\x01}(X\x04\0\0\0selfh\x01ub"
    script = net("a = self.self\nreturn (a).forward(x, )")
    broken = Script(Raw(code), script.code)
    refused(broken, tmp_path, "nested deeper than 60")


def test_decorators_and_defaults_are_not_evaluated(tmp_path: Path) -> None:
    text = f"@{EXPLOIT}\nclass Net(Module, metaclass={EXPLOIT}):\n  a : {EXPLOIT} = 1\n"
    text += f"  @{EXPLOIT}\n  def forward(self, x: {EXPLOIT}) -> {EXPLOIT}:\n"
    script = Script(
        module("Net"), {"__torch__.py": f"{text}    return torch.relu(x)\n"}
    )
    path = script.saved(tmp_path)
    assert len(read(path, {"x": (2, 3)}).graph.nodes) == 1
    assert not Path("pwned").exists()


@pytest.mark.parametrize(
    "name",
    [EXPLOIT, "a;import os", "__init__", "weight\n", "..", "\\", "é" * 9, "a" * 5000],
)
def test_names_are_no_code(name: str, tmp_path: Path) -> None:
    array, stored = weight("0", 3, 3)
    inner = module(
        "Net", **{name: stored, f"{name}2": module("Inner", **{name: stored})}
    )
    text = f"""class Net(Module):
  def forward(self: __torch__.Net,
    x: Tensor) -> Tensor:
    _0 = getattr(self, {ascii(name)})
    _1 = getattr(self, {ascii(name + "2")})
    return torch.matmul((_1).forward(x, ), _0)
class Inner(Module):
  def forward(self: __torch__.Inner,
    x: Tensor) -> Tensor:
    return torch.matmul(x, getattr(self, {ascii(name)}))
"""
    script = Script(inner, {"__torch__.py": text}, [example("Float", 2, 3)])
    path = script.saved(tmp_path)
    check_body(import_model(path).text.encode("ascii"))
    model: Any = load(path)
    assert len(model.state_dict()) >= 1 and array.shape == (3, 3)
    assert not Path("pwned").exists()


@pytest.mark.parametrize(
    "kind", ["....etc.passwd.Net", "/etc/passwd.Net", "a" * 4000, "os.system"]
)
def test_classes_that_are_not_there(kind: str, tmp_path: Path) -> None:
    script = Script(module(kind), {"__torch__.py": "class Net(Module):\n  pass\n"})
    refused(script, tmp_path, "the archive has no class")


def test_pickles_still_call_nothing(tmp_path: Path) -> None:
    called = Raw(b"cos\nsystem\n(X\x0b\0\0\0touch pwned" + b"tR")
    refused(Script(called, {}), tmp_path, "os.system, which is refused")
    script = net("return x")
    more = [Entry("net/traced_inputs.pkl", b"\x80\x02" + called.code + b".")]
    broken = Script(script.root, script.code, None, (), more)
    refused(broken, tmp_path, "os.system, which is refused")


def test_examples_nested_without_end(tmp_path: Path) -> None:
    # Thirty lists, each with two references to the one before.
    code = b"]" + b"".join(b"q%c0](h%ch%ce" % (n, n, n) for n in range(1, 31))
    more = [
        Entry("net/traced_inputs.pkl", b"\x80\x02}(X\x07\0\0\0forward" + code + b"u.")
    ]
    script = net("return x")
    refused(Script(script.root, script.code, None, (), more), tmp_path, "1000 inputs")


def test_a_root_that_is_no_module(tmp_path: Path) -> None:
    refused(Script({"a": 1}, {}), tmp_path, "expected a module")
    state = New(Name("__torch__", "Net"), (), {"forward": 1})
    refused(Script(state, {}), tmp_path, "the archive has no class")
