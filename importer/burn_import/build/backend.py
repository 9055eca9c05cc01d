"""A PEP 517 backend that wraps another one, for backends without build hooks.

::

    [build-system]
    requires = ["flit_core", "burn-import"]
    build-backend = "burn_import.build.backend"

    [tool.burn-import]
    backend = "flit_core.buildapi"

    [[tool.burn-import.models]]
    input = "models/net.onnx"
    output = "src/app/net.py"

``backend`` is the wrapped backend: that of uv_build, poetry-core, flit or maturin.
Models are imported first. Model files that the wrapped backend leaves out are added to
a source distribution; a wheel must contain the outputs, which the wrapped backend
packs.
"""

import gzip
import tarfile
from collections.abc import Callable
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from burn_import.build.models import Model
from burn_import.build.project import (
    BuildFailed,
    import_models,
    inputs_inside,
    project_models,
    project_table,
)

_BUILDS = ("build_wheel", "build_editable", "build_sdist")
_OTHERS = (
    "get_requires_for_build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "prepare_metadata_for_build_wheel",
    "prepare_metadata_for_build_editable",
)


def __getattr__(name: str) -> Any:
    """Return the hook ``name`` of the wrapped backend, extended by the import."""
    if name not in (*_BUILDS, *_OTHERS):
        raise AttributeError(name)
    hook = getattr(_inner(), name)
    return _with_models(name, hook) if name in _BUILDS else hook


def _inner() -> Any:
    try:
        named = project_table(Path.cwd()).get("backend")
    except BuildFailed as error:
        raise SystemExit(str(error)) from None
    if not isinstance(named, str):
        raise SystemExit(
            "burn-import: expected the backend to build with, as "
            "[tool.burn-import] backend = 'flit_core.buildapi'"
        )
    module, _, attributes = named.partition(":")
    try:
        inner = import_module(module)
    except ImportError as error:
        raise SystemExit(
            f"burn-import: backend {named!r}: {error}; expected it in "
            "build-system.requires"
        ) from None
    for attribute in filter(None, attributes.split(".")):
        inner = getattr(inner, attribute)
    return inner


def _with_models(name: str, hook: Callable[..., str]) -> Callable[..., str]:
    def build(directory: str, *args: Any, **settings: Any) -> str:
        root = Path.cwd()
        try:
            models = project_models(root)
            for warning in import_models(models, root):
                print(f"burn-import: {warning}")
            built = hook(directory, *args, **settings)
            if name == "build_sdist":
                _add_models(Path(directory, built), models, root)
            elif name == "build_wheel":
                _check_outputs(Path(directory, built), models, root)
        except BuildFailed as error:
            raise SystemExit(str(error)) from None
        return built

    return build


def _check_outputs(wheel: Path, models: list[Model], root: Path) -> None:
    """Check that the wheel contains every generated module and record.

    Raises:
        BuildFailed: one is missing.
    """
    with ZipFile(wheel) as archive:
        names = set(archive.namelist())
    for path in (p for model in models for p in model.files):
        parts = path.relative_to(root).parts
        if not names & {"/".join(parts[i:]) for i in range(len(parts))}:
            raise BuildFailed(
                f"burn-import: {wheel.name} has no {path.name}: expected the backend "
                f"to pack {'/'.join(parts)}, which it may leave out if git ignores it"
            )


def _add_models(sdist: Path, models: list[Model], root: Path) -> None:
    """Add the models that a source distribution (``.tar.gz``) lacks.

    Times and owners are copied from the archive's first member, so that equal trees
    give equal bytes.
    """
    with tarfile.open(sdist) as archive:
        members = [(info, archive.extractfile(info)) for info in archive.getmembers()]
        top = members[0][0].name.partition("/")[0]
        there = {info.name for info, _ in members}
        missing = {
            f"{top}/{name}": path
            for name, path in inputs_inside(models, root).items()
            if f"{top}/{name}" not in there
        }
        if not missing:
            return
        packed = BytesIO()
        with (
            gzip.GzipFile("", "wb", fileobj=packed, mtime=0) as zipped,
            tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as target,
        ):
            for info, file in members:
                target.addfile(info, file)
            for name, path in missing.items():
                info = tarfile.TarInfo(name)
                info.size, info.mtime = path.stat().st_size, members[0][0].mtime
                with path.open("rb") as file:
                    target.addfile(info, file)
    sdist.write_bytes(packed.getvalue())
