"""Generated sources without the time that black takes to lay them out.

Black changes no meaning: the goldens, the zoo and every case of the conformance suite
as it is are laid out and executed, and so are the commands. Where thousands of models
are imported for their values alone, it took two fifths of the time.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from burn_import.codegen.module import formatting, module

_FORMATTED = formatting.format_source


@contextmanager
def as_printed() -> Iterator[None]:
    """Leave sources as they are printed while the block runs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "format_emitted", str)
        patch.setattr(formatting, "format_source", str)
        yield


@contextmanager
def laid_out() -> Iterator[None]:
    """Lay out sources while the block runs, also inside of ``as_printed``."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "format_emitted", formatting.format_emitted)
        patch.setattr(formatting, "format_source", _FORMATTED)
        yield


@pytest.fixture(autouse=True, scope="module")
def printed_only() -> Iterator[None]:
    """Do so for the tests of a module that imports this fixture."""
    with as_printed():
        yield
