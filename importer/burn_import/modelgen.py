"""Imports from a script, with the interface of Burn's ``ModelGen`` in ``build.rs``."""

from dataclasses import replace
from pathlib import Path
from typing import Self

from burn_import.options import Options


class ModelGen:
    """Writes a module for each of several models.

    For example::

        ModelGen().input("net.onnx").out_dir("app").run_from_script()
    """

    def __init__(self) -> None:
        self._inputs: list[Path] = []
        self._out_dir = Path()
        self._output: Path | None = None
        self._class_name: str | None = None
        self._force = False
        self._operators: list[str] = []
        self._options = Options()

    def input(self, path: str | Path) -> Self:
        """Add a model's file."""
        self._inputs.append(Path(path))
        return self

    def out_dir(self, path: str | Path) -> Self:
        """Write to this directory, created if missing; default is the current one."""
        self._out_dir = Path(path)
        return self

    def output(self, path: str | Path) -> Self:
        """Write the only input's module to this file; in ``out_dir`` if relative."""
        self._output = Path(path)
        return self

    def class_name(self, name: str) -> Self:
        """Set the class name of the only input."""
        self._class_name = name
        return self

    def operators(self, module: str) -> Self:
        """Import this module first: it declares custom operators."""
        self._operators.append(module)
        return self

    def options(self, options: Options) -> Self:
        """Import with these options, except for the names of classes and files."""
        self._options = options
        return self

    def force(self, force: bool = True) -> Self:
        """Replace files that were edited or are from other sources."""
        self._force = force
        return self

    def run_from_script(self) -> list[Path]:
        """Write all outputs; return the paths, each module before its record.

        All models are compiled before the first file is written. Unchanged
        files are not touched, but their paths are returned too.

        Raises:
            ValueError: no input, or two of them with one output.
            burn_ir.ModelError: a model cannot be imported.
            burn_import.output.OutputRefused: an output is not the importer's to write.
            OSError: a file or directory cannot be written.
        """
        from burn_import.pipeline import import_model, write_model

        jobs = []
        for source, output in self._jobs():
            options = replace(
                self._options,
                class_name=self._class_name or self._options.class_name,
                stem=output.stem,
                operators=(*self._options.operators, *self._operators),
            )
            jobs.append((import_model(source, options), output))
        paths: list[Path] = []
        for compiled, output in jobs:
            output.parent.mkdir(parents=True, exist_ok=True)
            written = write_model(compiled, output, force=self._force)
            paths += written.files
        return paths

    def _jobs(self) -> list[tuple[Path, Path]]:
        """Return each input with its output."""
        from burn_import.output import check_module_path
        from burn_import.pipeline import module_stem

        if not self._inputs:
            raise ValueError("expected an input, got none; call input(path)")
        single = self._output is not None or self._class_name is not None
        if single and len(self._inputs) > 1:
            raise ValueError(
                "expected one input for output() and class_name(), "
                f"got {len(self._inputs)}"
            )
        jobs: dict[Path, Path] = {}
        for source in self._inputs:
            output = self._out_dir / (self._output or f"{module_stem(source)}.py")
            check_module_path(output)
            if output in jobs:
                raise ValueError(
                    f"expected different outputs, got {output} for both "
                    f"{jobs[output]} and {source}"
                )
            jobs[output] = source
        return [(source, output) for output, source in jobs.items()]
