"""Rejection of options that have no effect on a kind of file."""

from collections.abc import Collection

from burn_import.file_kinds import FileKind
from burn_import.options import Options
from burn_import.transform.errors import WrongOptions
from burn_ir.errors import Problem

#: Options of models with a program (a graph).
OF_PROGRAMS = ("--flat", "--shape", "--inputs", "--outputs", "--simplify")
#: Options of weights alone, with the purpose of each.
OF_WEIGHTS = {
    "--config": "the config.json of the model that weights are of",
    "--top-level-key": "the dict in a checkpoint that holds the weights",
    "--activation": "what stands between the layers of an nn.Sequential",
    "--padding": "what convolutions of an nn.Sequential do at borders",
    "--pool": "what stands behind convolutions of an nn.Sequential",
}
_PROGRAMS = {
    FileKind.ONNX: "an ONNX model",
    FileKind.EXPORTED_PROGRAM: "an exported program",
    FileKind.TORCHSCRIPT: "a TorchScript archive",
}
_OF_SEQUENTIALS = ("--padding", "--pool")


def given_options(options: Options) -> list[str]:
    """Return the flags of the options that are not the defaults, ``stem`` aside."""
    hints = options.hints
    values = {
        "--class-name": options.class_name,
        "--simplify": options.passes is not None,
        "--operators": options.operators,
        "--flat": options.flat,
        "--dtype": options.dtype,
        "--shape": options.shapes,
        "--inputs": options.inputs,
        "--outputs": options.outputs,
        "--standalone": options.standalone,
        "--embed": options.embed,
        "--dropout": options.dropout,
        "--shard-size": options.shard_size,
        "--target": options.target != "burn",
        "--config": hints.config,
        "--top-level-key": hints.top_level_key,
        "--activation": hints.activation,
        "--padding": hints.padding,
        "--pool": hints.pool,
    }
    return [flag for flag, value in values.items() if value]


def refuse_options(
    options: Options, flags: Collection[str], expected: str, got: str
) -> None:
    """Check that no option with one of these flags is given.

    Raises:
        WrongOptions: lists each given flag with ``expected``, ``got`` and its purpose.
    """
    problems = [
        Problem(f"{flag}: expected {expected}, got {got}", hint=_purpose(flag))
        for flag in given_options(options)
        if flag in flags
    ]
    if problems:
        raise WrongOptions(problems)


def check_applicable(kind: FileKind, options: Options) -> None:
    """Check that every given option can have an effect on files of ``kind``.

    Raises:
        WrongOptions: lists every option without effect.
    """
    if kind is not FileKind.WEIGHTS:
        refuse_options(options, OF_WEIGHTS, "weights alone", _PROGRAMS[kind])
        return
    refuse_options(
        options, ("--operators", "--dropout"), "a model with a program", "weights alone"
    )
    if options.hints.activation is None:
        refuse_options(options, _OF_SEQUENTIALS, "--activation as well", "none")
    else:
        expected = "weights of a known architecture"
        got = "--activation, which makes an nn.Sequential of them"
        refuse_options(options, ("--config",), expected, got)


def _purpose(flag: str) -> str:
    purpose = OF_WEIGHTS.get(flag, "")
    return f"{flag} is {purpose}" if purpose else ""
