"""From a raw model to the typed graph with the caller's options applied."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from burn_import.options import (
    ACTIVATIONS,
    ALL,
    DTYPES,
    PADDINGS,
    POOLS,
    TARGETS,
    Extents,
    Options,
)
from burn_import.transform.errors import WrongOptions, unknown
from burn_import.transform.opening import Opened, open_extents, split_opened
from burn_import.transform.opening.examples import check_examples
from burn_import.transform.precision import in_precision
from burn_import.transform.shapes import reshaped_model, with_shapes
from burn_import.transform.subgraph import begin_cut, finish_cut
from burn_ir import build
from burn_ir.errors import InvalidModel, Problem
from burn_ir.graph import Graph
from burn_ir.infer import infer
from burn_ir.raw import RawModel


def prepared(model: RawModel, options: Options) -> Graph:
    """Return the typed graph of ``model`` with shapes, cut and dtype of ``options``.

    Raises:
        WrongOptions: the options contradict the model; all reasons are listed.
        UnsupportedModel, InvalidModel: as :func:`burn_ir.build` does.
    """
    _check_inputs(model, options)
    shapes, opened = split_opened(model.graph.inputs, options.shapes)
    input_shapes = {n: s for n, s in shapes.items() if n in model.graph.inputs}
    later = {n: s for n, s in shapes.items() if n not in input_shapes}
    try:
        graph = _cut(
            reshaped_model(model, input_shapes) if input_shapes else model, options
        )
        if later:
            graph = _apply_shapes(graph, options.inputs, later)
        if opened:
            graph = _opened(graph, model, opened, options)
    except InvalidModel as error:
        if not options.shapes:
            raise
        # The model may be valid and the given shapes wrong; the location alone does not
        # show that.
        hint = "the shapes that were asked for may not fit"
        problems = [_with_hint(problem, hint) for problem in error.problems]
        raise InvalidModel(problems) from error
    return graph if options.dtype is None else in_precision(graph, options.dtype)


def _with_hint(problem: Problem, hint: str) -> Problem:
    return replace(problem, hint=problem.hint or hint)


def _cut(model: RawModel, options: Options) -> Graph:
    if not options.inputs and not options.outputs:
        return build(model)
    if model.graph.states:
        names = ", ".join(map(repr, model.graph.states))
        raise WrongOptions(f"expected a whole model, since calls change {names}")
    raw, cut = begin_cut(model, options.inputs, options.outputs)
    return finish_cut(build(raw), cut)


def _apply_shapes(
    graph: Graph, inputs: Sequence[str], shapes: Mapping[str, Extents]
) -> Graph:
    """Return ``graph`` with given shapes applied to inputs that the cut created."""
    names = dict(zip(inputs, graph.inputs, strict=True))
    extents_by_name = {names[name]: extents for name, extents in shapes.items()}
    types = with_shapes(
        {name: graph.types[name] for name in graph.inputs}, extents_by_name
    )
    return infer(replace(graph, types={**graph.types, **types}))


def _opened(graph: Graph, model: RawModel, opened: Opened, options: Options) -> Graph:
    """Return ``graph`` with extents opened that the file fixes, after a check."""
    if options.inputs or options.outputs or graph.states:
        part = "calls change buffers of it" if graph.states else "got a part of it"
        message = f"expected a whole model to open extents that the file fixes, {part}"
        raise WrongOptions([Problem(message)])
    from burn_import.passes.cleanup.strided_views import strided_views

    graph = strided_views(graph)  # gathers at indices that a batch changes
    names = dict(zip(model.graph.inputs, graph.inputs, strict=True))
    axes = {names[name]: by_axis for name, by_axis in opened.items()}
    result = open_extents(graph, axes)
    check_examples(graph, result, axes)
    return result


def _check_inputs(model: RawModel, options: Options) -> None:
    """Check that shapes are given for existing inputs only."""
    user_inputs = (
        name for name in model.graph.inputs if name not in model.graph.states
    )
    inputs = options.inputs or tuple(user_inputs)
    problems = [
        unknown("an input to give a shape", name, inputs)
        for name in options.shapes
        if name not in inputs
    ]
    if problems:
        raise WrongOptions(problems)


def check_options(options: Options) -> None:
    """Check that the options are valid and consistent, independent of the model.

    Raises:
        WrongOptions: a value is unknown or two contradict; everything is listed.
    """
    problems = [*_unknown_words(options), *_contradictions(options)]
    if problems:
        raise WrongOptions(problems)


def _unknown_words(options: Options) -> Iterator[Problem]:
    """Yield the options with a value that is not among the known ones."""
    from burn_import.passes import pass_names

    valid = [ALL, *pass_names()]
    for name in options.passes or ():
        if name not in valid:
            problem = unknown("a pass", name, valid)
            hint = problem.hint or f"there are {', '.join(valid)}"
            yield Problem(problem.message, hint=hint)
    hints = options.hints
    for kind, value, words in (
        ("a dtype", options.dtype, DTYPES),
        ("an activation", hints.activation, ACTIVATIONS),
        ("a padding", hints.padding, PADDINGS),
        ("a pool", hints.pool, POOLS),
        ("a target", options.target, TARGETS),
    ):
        if value is not None and value not in words:
            yield Problem(f"expected {kind} among {', '.join(words)}, got {value!r}")


def _contradictions(options: Options) -> Iterator[Problem]:
    """Yield the options that exclude another one."""
    if options.embed and options.target != "burn":
        yield Problem(
            "--embed: expected the target burn, got "
            f"{options.target!r}, whose modules load safetensors files"
        )
    if options.shard_size is not None and options.largest_file is None:
        message = "--shard-size: expected the target burn, and neither --embed nor "
        yield Problem(message + "--standalone: others load one file")
    if options.standalone and options.target != "burn":
        yield Problem(
            f"expected the target burn of a standalone module, got {options.target!r}"
        )
