"""Forms of signal transforms and recurrent operators."""

from typing import Any

from burn import ops
from burn_import.codegen.torch.registry import flag, form, refusal, unless
from burn_import.codegen.torch.renderer import TorchRenderer
from burn_import.tracing.expression import Expression
from burn_import.tracing.identifiers import literal
from burn_import.tracing.trace import Apply


@form(ops.stft)
def stft(r: TorchRenderer, call: Apply) -> Expression:
    arguments = r.named_arguments(call)
    window = arguments["window"]
    keywords: dict[str, Any] = {
        "window": None if window is None else r.tensor(window),
        "length": (
            None
            if arguments["frame_length"] is None
            else r.integer(arguments["frame_length"])
        ),
        "onesided": unless(arguments["onesided"], True),
    }
    args = [r.tensor(arguments["signal"]), r.integer(arguments["frame_step"])]
    return r.call("_stft", args, keywords)


@form(ops.dft)
def dft(r: TorchRenderer, call: Apply) -> Expression:
    arguments = r.named_arguments(call)
    keywords: dict[str, Any] = {
        "length": (
            None if arguments["length"] is None else r.integer(arguments["length"])
        ),
        "dim": None if arguments["axis"] == -2 else r.integer(arguments["axis"]),
        "inverse": flag(arguments["inverse"]),
        "onesided": flag(arguments["onesided"]),
    }
    return r.call("_dft", [r.tensor(arguments["x"])], keywords)


#: Options of recurrent operators that the helpers support.
RECURRENT = frozenset(
    {"activations", "clip", "direction", "input_forget", "layout"}
    | {"linear_before_reset"}
)


@form(ops.lstm, ops.gru, ops.rnn)
def recurrent(r: TorchRenderer, call: Apply) -> Expression:
    """Return a helper in ONNX's layout, for operators without a PyTorch layer."""
    arguments = r.named_arguments(call)
    keywords: dict[str, Any] = {
        name: None if arguments.get(name) is None else r.tensor(arguments[name])
        for name in ("b", "h0", "c0", "seq_lens", "peephole")
    }
    for name, value in call.static.items():
        if name in RECURRENT:
            keywords[name] = literal(value)
        elif name != "hidden_size" and value:
            raise refusal(call, f"expected no option {name!r}, got {value!r}")
    args = [r.tensor(arguments[name]) for name in ("x", "w", "r")]
    return r.call(f"_{call.primitive.name}", args, keywords)
