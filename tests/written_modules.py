"""Modules of model files, written once in a run for all the tests that execute them."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from tests.layout import laid_out
from tests.modules import generate, import_file


class Modules:
    """Modules below one folder, which all processes of a run share."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)

    def written(self, model: Path) -> tuple[Path, str]:
        """Return the module written for ``model``, and its main class.

        It is laid out whoever asks for it, since tests of the layout read it too. A
        process that writes it while another does keeps the other's.
        """
        target = self.folder / sha256(str(model.resolve()).encode()).hexdigest()[:16]
        if not target.is_dir():
            with self._new_folder() as folder, laid_out():
                _, name = generate(model, folder)
                (folder / "class_name").write_text(name, "ascii")
                try:
                    folder.rename(target)
                except OSError:
                    if not target.is_dir():
                        raise
        return target / "net.py", (target / "class_name").read_text("ascii")

    def text(self, model: Path) -> str:
        """Return the source of the module for ``model``."""
        return self.written(model)[0].read_text("ascii")

    def load(self, model: Path) -> Any:
        """Return a new instance of the main class for ``model``, with its weights."""
        module, name = self.written(model)
        return getattr(import_file(module), name).load()

    @contextmanager
    def _new_folder(self) -> Iterator[Path]:
        """Yield a folder, which is removed afterwards if it still has its name."""
        folder = Path(mkdtemp(dir=self.folder))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
