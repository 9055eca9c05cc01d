"""The command line's import options, converted to ``Options``."""

from __future__ import annotations

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
    ctx: click.Context, param: click.Parameter, given: Sequence[str]
) -> dict[str, Extents]:
    shapes: dict[str, Extents] = {}
    for text in given:
        try:
            name, extents = parse_shape(text)
        except ValueError as error:
            raise click.BadParameter(str(error), ctx, param) from None
        if name in shapes:
            raise click.BadParameter(f"expected one shape of {name!r}", ctx, param)
        shapes[name] = extents
    return shapes


_CHOICES = (
    click.option(
        "--class-name", help="The name of the top class. [default: the module's]"
    ),
    click.option(
        "--flat",
        is_flag=True,
        help="Write one class, whatever modules the model was made of.",
    ),
    click.option(
        "--standalone",
        is_flag=True,
        help="Write the used parts of the runtime into the module, which then needs"
        " NumPy alone and is for inference.",
    ),
    click.option(
        "--no-simplify", is_flag=True, help="Leave the nodes as they are in the file."
    ),
    click.option(
        "--simplify",
        "passes",
        multiple=True,
        metavar="PASS,...",
        help="Run these passes alone (`burn-import passes` lists them); `all` stands"
        " for those that run by default.",
    ),
    click.option(
        "--dtype",
        type=click.Choice(DTYPES),
        help="Compute in this dtype; weights, inputs and outputs have it too.",
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
        help="Fix or name the extents of an input: x=batch,3,224,224. May be repeated.",
    ),
    click.option(
        "--inputs",
        multiple=True,
        metavar="NAME,...",
        help="Begin at these values of the file: the inputs of the module.",
    ),
    click.option(
        "--outputs",
        multiple=True,
        metavar="NAME,...",
        help="End at these values of the file: the outputs of the module.",
    ),
    click.option(
        "--config",
        metavar="FILE",
        help="For weights alone: the config.json of their model. [default: the one"
        " beside them]",
    ),
    click.option(
        "--activation",
        type=click.Choice(ACTIVATIONS),
        help="For weights of an nn.Sequential: what stands between its layers.",
    ),
    click.option(
        "--padding",
        type=click.Choice(PADDINGS),
        help="For weights of an nn.Sequential: whether convolutions keep extents.",
    ),
    click.option(
        "--pool",
        type=click.Choice(POOLS),
        help="For weights of an nn.Sequential: what stands where a second number is"
        " left out between convolutions.",
    ),
    click.option(
        "--top-level-key",
        metavar="KEY",
        help="For weights: the dict in a checkpoint that holds them. [default:"
        " state_dict or model_state_dict, if there is one]",
    ),
    click.option(
        "--operators",
        multiple=True,
        metavar="MODULE",
        help="A module that declares operators of your own. May be repeated.",
    ),
)


def choices(command: F) -> F:
    """Decorate ``command`` with the import options as further arguments."""
    for option in reversed(_CHOICES):
        command = option(command)
    return command


def options_of(given: dict[str, Any]) -> Options:
    """Return the options that a command's further arguments set.

    Raises:
        click.UsageError: the arguments contradict each other.
    """
    given = dict(given)
    passes = split_names(given.pop("passes"))
    if given.pop("no_simplify"):
        if passes:
            raise click.UsageError("expected one of --simplify and --no-simplify")
        return _options(given, ())
    return _options(given, passes or None)


def _options(given: dict[str, Any], passes: tuple[str, ...] | None) -> Options:
    hints = {field.name: given.pop(field.name) for field in fields(Hints)}
    ends = {key: split_names(given.pop(key)) for key in ("inputs", "outputs")}
    wanted: dict[str, Any] = {**given, **ends}
    return Options(passes=passes, hints=Hints(**hints), **wanted)
