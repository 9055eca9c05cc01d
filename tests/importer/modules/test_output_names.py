"""Names of several outputs that the file calls after operators or numbers."""

from pathlib import Path

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
