"""Limits on the work that interpreting an archive may cause."""

from __future__ import annotations

from dataclasses import dataclass

from burn_ir import UnsupportedModel

#: Largest number of tokens of code: about a hundred transformer layers.
MOST_WORDS = 200_000
#: Steps and nodes allowed for any program, summed over all interpretations of it.
_STEPS, _NODES = 100_000, 4_000
#: Steps and nodes allowed per token in each interpretation; a traced node has about ten
#: tokens.
_STEPS_PER_WORD, _WORDS_PER_NODE = 4, 4
#: Steps and nodes allowed per module, since scripted modules share their code.
_STEPS_PER_MODULE, _NODES_PER_MODULE = 400, 60


class TooMuch(UnsupportedModel):  # noqa: N818
    """Raised when a program exceeds the limits on steps or nodes."""


@dataclass
class Pool:
    """Steps and nodes for programs that need more than their code size suggests."""

    steps: int = _STEPS
    nodes: int = _NODES


class Budget:
    """Remaining steps and nodes, given the size of the code and the modules.

    When it is used up, it takes from ``pool``, which is shared by all interpretations
    of the program with different input types.
    """

    def __init__(self, words: int, modules: int, pool: Pool) -> None:
        self.steps = _STEPS_PER_WORD * words + _STEPS_PER_MODULE * modules
        self.nodes = words // _WORDS_PER_NODE + _NODES_PER_MODULE * modules
        self.pool = pool

    def step(self, count: int = 1) -> None:
        """Count statements, calls and list items.

        Raises:
            TooMuch: the limit is exceeded.
        """
        self.steps -= count
        if self.steps < 0:
            self.pool.steps += self.steps
            self.steps = 0
            if self.pool.steps < 0:
                raise TooMuch("the program exceeds the limit on interpreted steps")

    def node(self, count: int) -> None:
        """Count nodes added to the graph.

        Raises:
            TooMuch: the limit is exceeded.
        """
        self.nodes -= count
        if self.nodes < 0:
            self.pool.nodes += self.nodes
            self.nodes = 0
            if self.pool.nodes < 0:
                raise TooMuch(
                    "the program exceeds the limit on nodes for its code size"
                )
