"""Fetches the public models of ``manifest.json`` into ``models/.cache``.

``python models/fetch.py --list`` shows what there is; without ``--list`` it fetches all
public models, or those that are named. Tests never need what it fetches.
"""

import argparse
import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import IO, Any
from urllib.request import urlopen

HERE = Path(__file__).parent
MANIFEST = HERE / "manifest.json"
CACHE = HERE / ".cache"
TIMEOUT = 60.0
CHUNK = 1 << 16

Opener = Callable[[str], AbstractContextManager[IO[bytes]]]


class FetchError(Exception):
    """A model could not be fetched, or is not the file the manifest describes."""


@dataclass(frozen=True)
class Model:
    """One entry of the manifest.

    ``url`` is None for a model that is committed; ``path`` is relative to ``models/``
    for such a model and to ``models/.cache`` for a fetched one. ``bytes`` is the size
    of the file, ``inputs`` maps each input name to its dtype and dimensions as text.
    """

    name: str
    path: str
    url: str | None
    license: str
    sha256: str
    bytes: int
    inputs: dict[str, str]


def read_manifest(path: Path = MANIFEST) -> list[Model]:
    """Return the entries of the manifest; raises TypeError on an unknown field."""
    entries: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))["models"]
    return [Model(**entry) for entry in entries]


def open_https(url: str) -> AbstractContextManager[IO[bytes]]:
    """Return the open response; raises FetchError unless the scheme is https."""
    if not url.startswith("https://"):
        raise FetchError(f"{url}: expected an https address")
    response: AbstractContextManager[IO[bytes]] = urlopen(url, timeout=TIMEOUT)
    return response


def fetch(model: Model, cache: Path = CACHE, opener: Opener = open_https) -> Path:
    """Return the path of the verified file, fetched unless the cache holds it.

    The file appears under its name only when size and SHA-256 agree with the manifest;
    otherwise FetchError is raised and nothing is left behind.
    """
    target = cache / model.path
    if target.is_file() and digest(target) == model.sha256:
        return target
    if model.url is None:
        raise FetchError(f"{model.name}: is committed, there is nothing to fetch")
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=".fetch-")
    partial = Path(name)
    try:
        with os.fdopen(handle, "wb") as sink:
            _copy(model, model.url, opener, sink)
        partial.chmod(0o644)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
    return target


def digest(path: Path) -> str:
    """Return the SHA-256 of a file as lower-case hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _copy(model: Model, url: str, opener: Opener, sink: IO[bytes]) -> None:
    """Return nothing; copies the body of ``url`` and checks it against ``model``."""
    sha, size = hashlib.sha256(), 0
    try:
        with opener(url) as source:
            while chunk := source.read(CHUNK):
                size += len(chunk)
                if size > model.bytes:
                    raise FetchError(f"{model.name}: longer than {model.bytes} bytes")
                sha.update(chunk)
                sink.write(chunk)
    except (OSError, HTTPException) as error:
        raise FetchError(f"{model.name}: {url}: {error}") from error
    if sha.hexdigest() != model.sha256:
        raise FetchError(
            f"{model.name}: expected sha256 {model.sha256} ({model.bytes} bytes), "
            f"got {sha.hexdigest()} ({size} bytes)"
        )


def describe(model: Model) -> str:
    """Return the one-line description that ``--list`` prints."""
    origin = "committed" if model.url is None else "public"
    size = f"{model.bytes / 1000:.0f} kB"
    return f"{model.name:<18} {origin:<10} {size:>8}  {model.license}"


def main(arguments: list[str] | None = None) -> int:
    """Return the exit status: 0, 1 if a model failed, 2 for an unknown name."""
    parser = argparse.ArgumentParser(description="Fetch the public models.")
    parser.add_argument("names", nargs="*", help="models to fetch; all without")
    parser.add_argument("--list", action="store_true", help="list, fetch nothing")
    options = parser.parse_args(arguments)
    models = read_manifest()
    if options.list:
        print("\n".join(describe(model) for model in models))
        return 0
    public = {model.name: model for model in models if model.url is not None}
    unknown = [name for name in options.names if name not in public]
    if unknown:
        print(f"not a public model: {', '.join(unknown)}", file=sys.stderr)
        return 2
    return _fetch_all([public[name] for name in options.names or public])


def _fetch_all(models: list[Model]) -> int:
    """Return 1 if any model failed, after trying them all, else 0."""
    status = 0
    for model in models:
        try:
            print(fetch(model))
        except FetchError as error:
            print(error, file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
