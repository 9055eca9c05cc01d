"""Limits on the work that an archive may cause."""

from __future__ import annotations

from dataclasses import dataclass

from burn_ir import UnsupportedModel

#: Words and signs of code that are parsed: a hundred layers of a transformer.
MOST_WORDS = 200_000
#: What small programs may do, in all the times that one is followed.
_STEPS, _NODES = 100_000, 4_000
#: What each word of code adds each time: a node of a trace takes about ten words.
_STEPS_PER_WORD, _WORDS_PER_NODE = 4, 4
#: What each module adds, since those of a script share their code.
_STEPS_PER_MODULE, _NODES_PER_MODULE = 400, 60


class TooMuch(UnsupportedModel):  # noqa: N818
    """A program goes on beyond what any model needs: it is not followed further."""


@dataclass
class Pool:
    """Extra budget of a program that does more work than its code suggests."""

    steps: int = _STEPS
    nodes: int = _NODES


class Budget:
    """Remaining work that code of this size and these modules may cause.

    Beyond that it takes from ``pool``, which lasts for all the times that a program is
    followed, each with other types of its inputs.
    """

    def __init__(self, words: int, modules: int, pool: Pool) -> None:
        self.steps = _STEPS_PER_WORD * words + _STEPS_PER_MODULE * modules
        self.nodes = words // _WORDS_PER_NODE + _NODES_PER_MODULE * modules
        self.pool = pool

    def step(self, count: int = 1) -> None:
        """Count statements, calls and items of lists.

        Raises:
            TooMuch: there were more than a program needs.
        """
        self.steps -= count
        if self.steps < 0:
            self.pool.steps += self.steps
            self.steps = 0
            if self.pool.steps < 0:
                raise TooMuch("a program that does more than any model needs")

    def node(self, count: int) -> None:
        """Count nodes that are written.

        Raises:
            TooMuch: there were more than so much code can need.
        """
        self.nodes -= count
        if self.nodes < 0:
            self.pool.nodes += self.nodes
            self.nodes = 0
            if self.pool.nodes < 0:
                raise TooMuch("a program of more nodes than its code can need")
