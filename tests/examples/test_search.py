"""Questions in other words than those of the headings find their sections."""

from typing import Any

import numpy as np
import pytest

from tests.test_house import ROOT


@pytest.mark.parametrize("example", ["search"], indirect=True)
def test_questions_find_their_pages(example: Any) -> None:
    index = example.Index(example.read_sections(ROOT / "docs"))
    np.testing.assert_allclose(np.linalg.norm(index.vectors, axis=1), 1, rtol=1e-5)
    for question, page in (
        ("how do I train on several GPUs", "docs/training.md"),
        ("change the number of classes", "docs/own-the-source.md"),
        ("cross entropy and other losses", "docs/training.md"),
        ("a library that is missing in a zip file", "docs/deployment.md"),
        ("shuffle batches of a dataset", "docs/data.md"),
    ):
        pages = [section.page for _, section in index.search(question)]
        assert page in pages, (question, pages)
    assert index.search("zzz") == []
