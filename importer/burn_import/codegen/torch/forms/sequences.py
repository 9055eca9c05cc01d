"""Forms of sequences, which are Python lists of tensors."""

from typing import Any

from burn import ops
from burn_import.codegen.torch.registry import form, torch_dtype, unless
from burn_import.codegen.torch.renderer import TorchRenderer
from burn_import.tracing.expression import ATOM, Expression, merge
from burn_import.tracing.trace import Apply


@form(ops.sequence)
def sequence(r: TorchRenderer, call: Apply) -> Expression:
    return r.items(call.args[0])


@form(ops.sequence_at)
def sequence_at(r: TorchRenderer, call: Apply) -> Expression:
    """Return ``items[position]``."""
    items, position = r.data(call.args[0]), r.integer(call.args[1])
    text = f"{items.inside(ATOM)}[{position.text}]"
    return Expression(text, ATOM, merge([items, position]))


@form(ops.sequence_joined)
def sequence_joined(r: TorchRenderer, call: Apply) -> Expression:
    left, right = (r.value(arg) for arg in call.args)
    return left.infix("+", right, 12)


@form(ops.sequence_insert)
def sequence_insert(r: TorchRenderer, call: Apply) -> Expression:
    items, item, position = call.args
    return r.call("_inserted", [r.data(items), r.value(item), r.integer(position)])


@form(ops.sequence_erase)
def sequence_erase(r: TorchRenderer, call: Apply) -> Expression:
    arguments = r.named_arguments(call)
    return r.call(
        "_erased", [r.data(arguments["sequence"]), r.integer(arguments["position"])]
    )


@form(ops.sequence_length)
def sequence_length(r: TorchRenderer, call: Apply) -> Expression:
    items = r.data(call.args[0])
    count = Expression(f"len({items.text})", ATOM, items.symbols)
    return r.call("torch.tensor", [count])


@form(ops.sequence_reversed)
def sequence_reversed(r: TorchRenderer, call: Apply) -> Expression:
    items = r.data(call.args[0])
    return Expression(f"{items.inside(ATOM)}[::-1]", ATOM, items.symbols)


@form(ops.stack_rows)
def stack_rows(r: TorchRenderer, call: Apply) -> Expression:
    arguments = r.named_arguments(call)
    keywords: dict[str, Any] = {
        "dim": unless(arguments["axis"], 0),
        "dtype": torch_dtype(arguments["dtype"]),
    }
    return r.call(
        "_stack_rows",
        [r.data(arguments["rows"]), r.integers(arguments["shape"])],
        keywords,
    )


@form(ops.split_to_sequence)
def split_to_sequence(r: TorchRenderer, call: Apply) -> Expression:
    arguments = r.named_arguments(call)
    sizes = arguments["sizes"]
    one = isinstance(sizes, int) or r.rank(sizes) == 0
    keywords: dict[str, Any] = {
        "dim": unless(arguments["axis"], 0),
        "keepdims": unless(arguments["keepdims"], True),
    }
    args = [r.tensor(arguments["x"]), r.integer(sizes) if one else r.integers(sizes)]
    return r.call("_split_to_sequence", args, keywords)


@form(ops.element)
def element(r: TorchRenderer, call: Apply) -> Expression:
    return r.call("_element", [r.data(call.args[0])])


@form(ops.has_element)
def has_element(r: TorchRenderer, call: Apply) -> Expression:
    value = r.data(call.args[0])
    is_present = Expression(f"{value.inside(7)} is not None", 6, value.symbols)
    return r.call("torch.tensor", [is_present])


@form(ops.fill_rows)
def fill_rows(r: TorchRenderer, call: Apply) -> Expression:
    rows, length = call.args
    return r.call("_fill_rows", [r.tensor(rows), r.integer(length)])
