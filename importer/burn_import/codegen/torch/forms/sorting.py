"""Forms of sorting and selection primitives."""

from burn import ops
from burn_import.codegen.torch.registry import flag, form, refusal, unless
from burn_import.codegen.torch.renderer import TorchRenderer
from burn_import.tracing.expression import ATOM, Expression
from burn_import.tracing.identifiers import literal
from burn_import.tracing.trace import Apply


@form(ops.topk)
def topk(r: TorchRenderer, call: Apply) -> Expression:
    """Return a helper that picks the first of ties; PyTorch leaves it undefined."""
    arguments = r.named_arguments(call)
    keywords = {
        "dim": unless(arguments["axis"], -1),
        "largest": unless(arguments["largest"], True),
    }
    k = arguments["k"]
    known = r.known(k)
    count = r.integer(known[0] if isinstance(known, list) else k)
    return r.call("_topk", [r.tensor(arguments["x"]), count], keywords)


@form(ops.argsort, ops.sort)
def argsort(r: TorchRenderer, call: Apply) -> Expression:
    arguments = r.named_arguments(call)
    keywords = {
        "dim": literal(arguments["axis"]),
        "descending": flag(arguments["descending"]),
        "stable": "True",
    }
    name = call.primitive.name
    result = r.call(f"torch.{name}", [r.tensor(arguments["x"])], keywords)
    return (
        Expression(f"{result.inside(ATOM)}[0]", ATOM, result.symbols)
        if name == "sort"
        else result
    )


@form(ops.unique)
def unique(r: TorchRenderer, call: Apply) -> Expression:
    arguments = r.named_arguments(call)
    if arguments["axis"] is not None:
        raise refusal(call, "expected unique elements, got rows along an axis")
    keywords = {"sorted": unless(arguments["sorted"], True)}
    return r.call("_unique", [r.tensor(arguments["x"])], keywords)


@form(ops.non_max_suppression)
def non_max_suppression(r: TorchRenderer, call: Apply) -> Expression:
    arguments = r.named_arguments(call)
    args = [r.tensor(arguments["boxes"]), r.tensor(arguments["scores"])]
    args.append(r.integer(arguments["max_output_boxes"]))
    args.append(r.number_or_tensor(arguments["iou_threshold"]))
    if arguments["score_threshold"] is not None:
        args.append(r.number_or_tensor(arguments["score_threshold"]))
    keywords = {"center": flag(arguments["center_point_box"])}
    return r.call("_non_max_suppression", args, keywords)


@form(ops.reverse_sequence)
def reverse_sequence(r: TorchRenderer, call: Apply) -> Expression:
    arguments = r.named_arguments(call)
    keywords = {
        "batch_dim": unless(arguments["batch_axis"], 1),
        "time_dim": unless(arguments["time_axis"], 0),
    }
    args = [r.tensor(arguments["x"]), r.tensor(arguments["lengths"])]
    return r.call("_reverse_sequence", args, keywords)
