"""Meaning, causes and remedies of each error code, for ``explain`` and the docs."""

from dataclasses import asdict, dataclass
from difflib import get_close_matches

import click

from burn_import.cli.tables import format_option, show_json, show_table


@click.command("explain")
@click.argument("code", required=False)
@format_option
def explain_command(code: str | None, style: str) -> None:
    """Explain CODE, the word in `error[CODE]`, or an exit code.

    Without CODE all codes are listed.
    """
    chosen = list(EXPLANATIONS) if code is None else explanations_of(code)
    if not chosen:
        words = [e.code for e in EXPLANATIONS]
        near = get_close_matches(str(code), words, 1, 0.6)
        help_text = f"did you mean {near[0]}?" if near else f"codes: {', '.join(words)}"
        raise click.UsageError(f"there is no code {code!r}; {help_text}")
    if style == "json":
        show_json({"codes": [asdict(e) for e in chosen]})
    elif code is None:
        rows = [(e.code, e.exit_code, e.summary) for e in EXPLANATIONS]
        show_table(("code", "exit", "meaning"), rows)
    else:
        click.echo("\n\n".join(map(text_of, chosen)))


@dataclass(frozen=True)
class Explanation:
    """An error code: the word in ``error[word]``, or in ``kind`` of the JSON.

    ``summary`` is a phrase, ``meaning`` a sentence or two. ``causes`` and ``remedies``
    are sentences, the most frequent first.
    """

    code: str
    exit_code: int
    summary: str
    meaning: str
    causes: tuple[str, ...]
    remedies: tuple[str, ...]


EXPLANATIONS = (
    Explanation(
        "refused",
        2,
        "a file or an argument does not fit the command",
        "The command did not run, or did not write its output.",
        (
            "The output is a file that burn-import did not write, or that was edited.",
            "The output has the name of a module that generated ones import: numpy.py.",
            "The output has another suffix than the command needs, such as `.onnx`.",
            "A file has the wrong type for its option: `--inputs` takes a `.npz`.",
            "The command executes a module that was edited, and fails in it.",
        ),
        (
            "Pass `--force` to replace the file, or another name with `-o`.",
            "Before that, `--force --dry-run` shows what an import would replace.",
            "Write arrays for `--inputs` by name: `numpy.savez('x.npz', image=array)`.",
        ),
    ),
    Explanation(
        "output",
        2,
        "a file cannot be opened or written",
        "The system refused to open or write a file; the message has its reason.",
        (
            "The folder belongs to another user, or is read-only.",
            "The disk is full.",
            "The path is a folder, or a parent of it is a file.",
        ),
        (
            "Pass a path in a writable folder with `-o`.",
            "Free disk space. Existing files are unchanged.",
        ),
    ),
    Explanation(
        "options",
        2,
        "options contradict each other or the model",
        "An option does not apply to this model, or does not fit another option.",
        (
            "A name in `--shape`, `--inputs` or `--outputs` is not in the model.",
            "`--shape` has another number for a dimension that the file fixes.",
            "`--shape` opens a dimension along which examples depend on each other.",
            "The option is for another kind of file: `--config` is for weights alone.",
        ),
        (
            "Use a name from the message, which lists similar ones.",
            "`burn-import inspect MODEL` shows inputs and outputs with their types.",
            "docs/options.md lists the options and the kinds of files they apply to.",
        ),
    ),
    Explanation(
        "unreadable",
        3,
        "the file is no model, or is incomplete",
        "The file cannot be read as a model. The message names the detected format.",
        (
            "The path is misspelt, or is a folder.",
            "A download or a copy was cut off, or left an HTML page.",
            "The file is a pointer of Git LFS.",
            "The weights of a large model are in a second file that is missing.",
            "It is a model of another framework, such as TFLite or Keras.",
        ),
        (
            "Compare the size with the original, and copy or download it again.",
            "Fetch files of Git LFS with `git lfs pull`.",
            "Copy all files that the exporter wrote into one folder.",
            "Export models of other frameworks to ONNX.",
        ),
    ),
    Explanation(
        "unsupported",
        4,
        "the model uses unsupported features",
        "burn-import cannot translate the model. All problems are listed.",
        (
            "An operator is misspelt, or belongs to a vendor's domain.",
            "The opset is newer than this version of burn-import knows.",
            "The command needs a model with a program, and the file has only weights.",
            "The target, or a record, cannot express a part of the model.",
        ),
        (
            "`burn-import ops MODEL` lists operators and whether each is supported.",
            "Declare custom operators in a module: `--operators MODULE`.",
            "Export the model with an older opset, or update burn-import.",
            "Import a part of the model with `--inputs` and `--outputs`.",
        ),
    ),
    Explanation(
        "invalid",
        5,
        "the model contradicts itself or ONNX",
        "The file is readable, but contradicts itself or the specification.",
        (
            "The shapes or dtypes of a node's operands do not match.",
            "A node reads a value that no node computes.",
            "The file was edited, or an old exporter wrote it.",
        ),
        (
            "Export the model again, with a newer exporter if there is one.",
            "Check it with `onnx.checker.check_model(path, full_check=True)`.",
        ),
    ),
    Explanation(
        "internal",
        70,
        "a defect of burn-import",
        "No model should cause this error. The message may name a workaround.",
        ("burn-import handles a structure in the model incorrectly.",),
        (
            "Report it with the model and the output of `-v`.",
            "Try `--flat`, or `--no-simplify`.",
        ),
    ),
    Explanation(
        "interrupted",
        130,
        "stopped from the keyboard",
        "The command was interrupted. Each file is unchanged, or completely replaced.",
        ("Control-C was pressed, or a prompt was aborted.",),
        ("Run the command again.",),
    ),
)


def explanations_of(word: str) -> list[Explanation]:
    """Return the explanations of a code, ``error[code]``, or an exit code."""
    code = word.strip().removeprefix("error[").rstrip("]:").lower()
    return [e for e in EXPLANATIONS if code in (e.code, str(e.exit_code))]


def text_of(explanation: Explanation) -> str:
    """Return the Markdown text that ``explain`` prints below the heading."""
    head = f"`{explanation.code}` (exit code {explanation.exit_code})"
    lines = [head, "", explanation.meaning]
    for title in ("causes", "remedies"):
        rows = getattr(explanation, title)
        lines += ["", f"{title.capitalize()}:", "", *(f"- {row}" for row in rows)]
    return "\n".join(lines)
