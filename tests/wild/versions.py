"""The versions of the packages that a run of the suite used."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

PACKAGES = (
    *("torch", "torchvision", "timm", "transformers", "diffusers"),
    *("onnx", "onnxscript", "onnxruntime", "numpy"),
)


def installed_versions() -> dict[str, str]:
    """Return the version of each installed package, and of Python."""
    versions = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions
