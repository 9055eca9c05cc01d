"""Searches the manual of this project by meaning.

    python examples/search/run.py "how do I train on several GPUs"

An imported network turns each section of the manual, and the question, into a vector of
96 numbers; the sections with the most similar vectors are the answer. The network is
computed from the manual by ``encoder.py``, and written into ``generated/``.
"""

import re
import sys
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import burn
from burn_import import ModelGen, Options

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
OUT = HERE / "generated"
CODE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


class Section(NamedTuple):
    """A part of a page under a heading."""

    page: str
    title: str
    text: str


def read_sections(folder: Path) -> list[Section]:
    """Return the sections of all pages of a folder that have more than a few words."""
    sections = []
    for path in sorted(folder.rglob("*.md")):
        prose = CODE.sub("", path.read_text("utf-8"))
        _, *parts = HEADING.split(prose)
        page = path.relative_to(folder.parent).as_posix()
        for title, text in zip(parts[::2], parts[1::2], strict=True):
            if len(text.split()) > 20:
                sections.append(Section(page, title, text))
    return sections


class Index:
    """The vectors of sections, and the network that makes them."""

    def __init__(self, sections: list[Section]) -> None:
        self.sections = sections
        OUT.mkdir(exist_ok=True)
        sys.path[:0] = [str(HERE), str(OUT)]
        self.encoder = import_module("encoder")
        texts = [f"{section.title} " * 3 + section.text for section in sections]
        model = OUT / "embedding.onnx"
        self.vocabulary = self.encoder.write_model(model, texts)
        options = Options(class_name="Encoder")
        ModelGen().input(str(model)).out_dir(str(OUT)).options(
            options
        ).run_from_script()
        self.network = import_module("embedding").Encoder.load()
        self.vectors = np.concatenate([self.embed(text) for text in texts])

    def embed(self, text: str) -> NDArray[np.float32]:
        """Return the vector of a text, float32[1, 96] of length 1."""
        ids = self.encoder.encode([text], self.vocabulary)
        vector: NDArray[np.float32] = self.network(burn.tensor(ids)).numpy()
        return vector

    def search(self, question: str, count: int = 5) -> list[tuple[float, Section]]:
        """Return the most similar sections, best first, with their similarities."""
        similar = self.vectors @ self.embed(question)[0]
        best = [at for at in np.argsort(-similar)[:count] if similar[at] > 0]
        return [(float(similar[at]), self.sections[at]) for at in best]


def main() -> None:
    """Print the best sections for the words of the command line."""
    question = " ".join(sys.argv[1:]) or "how do I train on several GPUs"
    print(question)
    for similarity, section in Index(read_sections(ROOT / "docs")).search(question):
        bar = "█" * round(20 * similarity)
        print(f"  {similarity:.2f} {bar:<20} {section.page}: {section.title}")


if __name__ == "__main__":
    main()
