"""Names of several outputs that the file calls after operators or numbers."""

from pathlib import Path
from random import Random

from burn_import.codegen.module.methods import LONG
from tests.importer.structure.scoped_net import ScopedNet, check_import


def test_outputs_are_named_after_the_layers_that_compute_them(tmp_path: Path) -> None:
    net = ScopedNet()
    x = net.run("Relu", "", net.linear("body", net.input("x", 2, 4), 4, 4))
    outputs = [net.linear(head, x, 4, 3) for head in ("mu", "logvar")]
    actual = check_import(tmp_path, net.model(*outputs), net.feeds())
    assert "    mu: Tensor\n    logvar: Tensor\n" in actual.source


def test_an_operator_is_no_name(tmp_path: Path) -> None:
    net = ScopedNet()
    x = net.input("x", 2, 4)
    outputs = [net.linear(head, x, 4, 3) for head in ("linear", "c")]
    actual = check_import(tmp_path, net.model(*outputs), net.feeds())
    assert "    c: Tensor" not in actual.source


def test_layers_with_the_names_of_packages(tmp_path: Path) -> None:
    net = ScopedNet()
    x = net.input("x", 2, 4)
    outputs = [net.linear(head, x, 4, 3) for head in ("nn", "burn")]
    actual = check_import(tmp_path, net.model(*outputs), net.feeds())
    assert "    nn_: Tensor\n    burn_: Tensor\n" in actual.source


def four_results(net: ScopedNet, scope: str, x: str) -> list[str]:
    """Return the hidden states of ``x`` after four different layers in ``scope``."""
    results = []
    for name, op in zip("abcd", ("Relu", "Tanh", "Sigmoid", "Erf"), strict=True):
        x = net.run(op, scope, net.linear(f"{scope}.{name}", x, 4, 4))
        results.append(x)
    return results


def read_with_head(net: ScopedNet, results: list[str]) -> str:
    """Return the sum of a layer's results for each of ``results``."""
    x, *others = (net.linear("head", one, 4, 3) for one in results)
    for other in others:
        x = net.run("Add", "", x, other)
    return x


def test_a_module_with_four_results_returns_a_named_tuple(tmp_path: Path) -> None:
    net = ScopedNet()
    results = four_results(net, "body.encoder", net.input("x", 2, 4))
    model = net.model(read_with_head(net, results))
    source = check_import(tmp_path, model, net.feeds()).source
    assert source.count("(NamedTuple):") == 1
    assert "class EncoderOutput(NamedTuple):" in source
    assert all(f"    hidden_state_{number}: Tensor\n" in source for number in range(4))
    assert "        return EncoderOutput(" in source
    # The module around it returns what it gets.
    assert source.count(") -> EncoderOutput:") == source.count("nn.Module):") - 1


def test_the_class_of_results_is_no_other_class(tmp_path: Path) -> None:
    net = ScopedNet()
    first, *others = four_results(net, "encoder", net.input("x", 2, 4))
    x = net.run("Relu", "encoder_output", net.linear("encoder_output.a", first, 4, 3))
    outputs = [
        net.linear(f"head.{number}", one, 4, 3) for number, one in enumerate(others)
    ]
    source = check_import(tmp_path, net.model(x, *outputs), net.feeds()).source
    assert "class EncoderOutput(nn.Module):" in source
    assert "class EncoderOutputs(NamedTuple):" in source


def test_results_that_nest_many_calls_have_names(tmp_path: Path) -> None:
    net = ScopedNet()
    x = net.input("x", 2, 2, 2)
    x = net.run("Tanh", "", net.linear("a", net.run("Flatten", "", x), 4, 4))
    outputs = [x, net.linear("b", net.input("z", 2, 4), 4, 3)]
    source = check_import(tmp_path, net.model(*outputs), net.feeds()).source
    assert "return NetOutput(" in source
    assert "self.a(x.flatten(1))" in source
    assert "(self.a(x.flatten(1)" not in source.partition("return NetOutput(")[2]


def test_the_last_method_of_a_long_body_returns_a_plain_tuple(tmp_path: Path) -> None:
    net, scope = ScopedNet(), "body.encoder"
    x, choice = net.run("Neg", "body", net.input("x", 2, 4)), Random(0).choice
    for _ in range(LONG):
        other = net.run(choice(("Sin", "Tanh", "Cos")), scope, x)
        x = net.run(choice(("Max", "Min")), scope, x, other)
    results = four_results(net, scope, x)
    model = net.model(read_with_head(net, results))
    source = check_import(tmp_path, model, net.feeds()).source
    assert "-> tuple[Tensor, Tensor, Tensor, Tensor]:" in source
    assert source.count("return EncoderOutput(") == 1
    assert source.count(") -> EncoderOutput:") == 2


def test_modules_around_a_list_return_the_tuple_of_its_module(tmp_path: Path) -> None:
    net = ScopedNet()
    x = net.run("Neg", "model.body", net.input("x", 2, 4))
    results = four_results(net, "model.body.layers.0", x)
    model = net.model(read_with_head(net, results))
    source = check_import(tmp_path, model, net.feeds()).source
    assert "        return self.layers[0](-x)" in source
    assert source.count("(NamedTuple):") == 1
    assert source.count(") -> LayerOutput:") == source.count("nn.Module):") - 1
