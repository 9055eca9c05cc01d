"""The command line's import options, converted to ``Options``."""

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any, TypeVar

import click

from burn_import.options import (
    ACTIVATIONS,
    DTYPES,
    PADDINGS,
    POOLS,
    TARGETS,
    Extents,
    Hints,
    Options,
    parse_shape,
    split_names,
)

F = TypeVar("F", bound=Callable[..., Any])


def _shapes(
    ctx: click.Context, param: click.Parameter, texts: Sequence[str]
) -> dict[str, Extents]:
    shapes: dict[str, Extents] = {}
    for text in texts:
        try:
            name, extents = parse_shape(text)
        except ValueError as error:
            raise click.BadParameter(str(error), ctx, param) from None
        if name in shapes:
            raise click.BadParameter(f"expected one shape of {name!r}", ctx, param)
        shapes[name] = extents
    return shapes


def _size(ctx: click.Context, param: click.Parameter, text: str | None) -> int | None:
    if text is None:
        return None
    from burn.record import parse_size

    try:
        return parse_size(text)
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, param) from None


operators_option = click.option(
    "--operators",
    multiple=True,
    metavar="MODULE",
    help="A module that declares custom operators. May be repeated.",
)
_CHOICES = (
    click.option(
        "--class-name", help="The name of the top class. [default: the module's]"
    ),
    click.option(
        "--flat", is_flag=True, help="Write a single class instead of one per module."
    ),
    click.option(
        "--standalone",
        is_flag=True,
        help="Include the used parts of the runtime in the module, which then needs"
        " only NumPy and supports only inference.",
    ),
    click.option(
        "--embed",
        is_flag=True,
        help="Write the weights (at most 4 MiB) into the module instead of a record"
        " beside it.",
    ),
    click.option(
        "--dropout",
        is_flag=True,
        help="Restore nn.Dropout where the file records its probability; it is active"
        " in training.",
    ),
    click.option(
        "--shard-size",
        metavar="SIZE",
        callback=_size,
        help="Write larger records in files of at most this size, with an index."
        " [default: 5GB]",
    ),
    click.option(
        "--no-simplify", is_flag=True, help="Run no simplification passes on the graph."
    ),
    click.option(
        "--simplify",
        "passes",
        multiple=True,
        metavar="PASS,...",
        help="Run only these passes (`burn-import passes` lists them); `all` stands for"
        " the default passes.",
    ),
    click.option(
        "--dtype",
        type=click.Choice(DTYPES),
        help="Compute in this dtype; it also applies to weights, inputs and outputs.",
    ),
    click.option(
        "--target",
        type=click.Choice(TARGETS),
        default="burn",
        help="The library that the module is written for; `torch` is PyTorch.",
    ),
    click.option(
        "--shape",
        "shapes",
        multiple=True,
        metavar="INPUT=EXTENT,...",
        callback=_shapes,
        help="Fix or name an input's dimensions: x=batch,3,224,224. A name for a"
        " dimension that the file fixes opens it. May be repeated.",
    ),
    click.option(
        "--inputs",
        multiple=True,
        metavar="NAME,...",
        help="Values of the file that become the inputs of the module.",
    ),
    click.option(
        "--outputs",
        multiple=True,
        metavar="NAME,...",
        help="Values of the file that become the outputs of the module.",
    ),
    click.option(
        "--config",
        metavar="FILE",
        help="For files of weights: the config.json of the model. [default: the one in"
        " the same folder]",
    ),
    click.option(
        "--activation",
        type=click.Choice(ACTIVATIONS),
        help="For weights of an nn.Sequential: the activation between its layers.",
    ),
    click.option(
        "--padding",
        type=click.Choice(PADDINGS),
        help="For weights of an nn.Sequential: the padding of its convolutions.",
    ),
    click.option(
        "--pool",
        type=click.Choice(POOLS),
        help="For weights of an nn.Sequential: the pooling at a second skipped number"
        " between convolutions.",
    ),
    click.option(
        "--top-level-key",
        metavar="KEY",
        help="For weights: the key of their dict in a checkpoint. [default: state_dict"
        " or model_state_dict, if it exists]",
    ),
    operators_option,
)


def choices(command: F) -> F:
    """Decorate ``command`` with the import options as further arguments."""
    for option in reversed(_CHOICES):
        command = option(command)
    return command


def options_of(arguments: dict[str, Any]) -> Options:
    """Return the options that a command's further arguments set.

    Raises:
        click.UsageError: the arguments contradict each other.
    """
    arguments = dict(arguments)
    passes = split_names(arguments.pop("passes"))
    if arguments.pop("no_simplify"):
        if passes:
            raise click.UsageError("expected one of --simplify and --no-simplify")
        return _options(arguments, ())
    return _options(arguments, passes or None)


def _options(arguments: dict[str, Any], passes: tuple[str, ...] | None) -> Options:
    hints = {field.name: arguments.pop(field.name) for field in fields(Hints)}
    ends = {key: split_names(arguments.pop(key)) for key in ("inputs", "outputs")}
    settings: dict[str, Any] = {**arguments, **ends}
    return Options(passes=passes, hints=Hints(**hints), **settings)
