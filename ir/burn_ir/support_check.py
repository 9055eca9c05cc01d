"""The check that all operators of a model are supported."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import cache

from burn_ir.errors import Problem, UnsupportedModel
from burn_ir.op import Op, operators
from burn_ir.raw import RawGraph, RawModel, RawNode

#: The newest version of each operator set that this package supports.
OPSETS: Mapping[str, int] = {
    "": 28,
    "ai.onnx.ml": 5,
    "ai.onnx.preview": 1,
    "ai.onnx.preview.training": 1,
    "com.microsoft": 1,
    "com.microsoft.nchwc": 1,
}

#: ONNX operators that cannot be imported, by (domain, name), with the reason.
UNSUPPORTED: Mapping[tuple[str, str], str] = {}

#: Constants are stored when the graph is built, so no operator is declared.
_CONSTANT = ("", "Constant")


def check_operators(model: RawModel) -> None:
    """Check that every node of the model and its subgraphs is supported.

    Raises:
        UnsupportedModel: with one problem for each node that is not, and for each
            operator set that is too new.
    """
    kinds = {(node.domain, node.op_type): node for node in walk(model.graph)}
    domains = sorted({domain for domain, _ in kinds})
    problems = [p for domain in domains for p in _too_new(domain, model.opsets)]
    if any(True for node in kinds.values() for _ in _problems(node, model.opsets)):
        nodes = walk(model.graph)
        problems += [p for n in nodes for p in _problems(n, model.opsets)]
    if problems:
        raise UnsupportedModel(problems)


def walk(graph: RawGraph) -> Iterator[RawNode]:
    """Yield every node of a graph and its subgraphs."""
    for node in graph.nodes:
        yield node
        for value in node.attrs.values():
            if isinstance(value, RawGraph):
                yield from walk(value)


def newest_opset(domain: str) -> int | None:
    """Return the newest known opset of a domain; None without any operator.

    For custom domains, it is the newest version of any operator.
    """
    if domain in OPSETS:
        return OPSETS[domain]
    declared = [op.versions[-1] for (d, _), op in operators().items() if d == domain]
    return max(declared, default=None)


def newest_version(node: RawNode) -> int:
    """Return the newest version of a declared operator."""
    return operators()[(node.domain, node.op_type)].versions[-1]


def operator_version(node: RawNode, opsets: Mapping[str, int]) -> int:
    """Return an operator's newest version up to the model's opset."""
    if (node.domain, node.op_type) == _CONSTANT:
        return 1
    op = operators()[(node.domain, node.op_type)]
    return _version(op, opsets.get(node.domain, 1))


@cache
def _version(op: type[Op], opset: int) -> int:
    return max(version for version in op.versions if version <= opset)


def _too_new(domain: str, opsets: Mapping[str, int]) -> Iterator[Problem]:
    opset, newest = opsets.get(domain), newest_opset(domain)
    if opset is None or newest is None or opset <= newest:
        return
    hint = f"export it for version {newest} of the domain, or update burn-import"
    if not domain:
        hint = (
            f"export it with opset_version={newest}, lower it with "
            f"onnx.version_converter.convert_version(model, {newest}), or update "
            "burn-import"
        )
    message = f"expected opset {newest} or older of domain {domain!r}, got {opset}"
    yield Problem(message, hint=hint)


def _problems(node: RawNode, opsets: Mapping[str, int]) -> Iterator[Problem]:
    key = (node.domain, node.op_type)
    if key == _CONSTANT:
        return
    name = node.name or next((o for o in node.outputs if o), "")
    opset = opsets.get(node.domain)
    newest = newest_opset(node.domain)
    if opset is not None and newest is not None and opset > newest:
        return  # reported once, by _too_new
    if key not in operators():
        yield Problem(_unknown(node), name, node.op_type, opset, _suggestion(node))
    elif all(v > (opset or 1) for v in operators()[key].versions):
        since = operators()[key].versions[0]
        message = f"expected opset {since} or newer for this operator"
        hint = f"export it with opset_version={since} or newer"
        yield Problem(message, name, node.op_type, opset, hint)


def _unknown(node: RawNode) -> str:
    reason = UNSUPPORTED.get((node.domain, node.op_type))
    if reason is not None:
        return f"operator {node.op_type!r} cannot be imported: {reason}"
    domain = f" of domain {node.domain!r}" if node.domain else ""
    return f"operator {node.op_type!r}{domain} is not supported"


def _suggestion(node: RawNode) -> str:
    names = [op for domain, op in operators() if domain == node.domain]
    close = get_close_matches(node.op_type, names, n=1, cutoff=0.75)
    if close:
        return f"did you mean {close[0]!r}?"
    homes = sorted({domain for domain, op in operators() if op == node.op_type})
    if homes:
        return f"it exists in domain {homes[0]!r}"
    if not node.domain:
        return "ONNX has no such operator: export the model again, or replace the node"
    return "declare it in your own module and pass that with --operators MODULE"
