"""The fixed sample, and its seeds that are known not to be right, with what is open."""

#: How many seeds of each profile a run compares, of ``--fuzz-graphs 60``. Graphs of
#: "mixed" are left out: they change with the cases of passes.
SHARES = {"operators": 22, "networks": 16, "types": 22}
#: The first seed beyond the sample, with which ``--fuzz-seconds`` goes on.
EXTRA = 100_000
#: So many further graphs a second: their number follows from the option, not from a
#: clock, so that the same graphs are compared on every machine.
GRAPHS_A_SECOND = 0.5

OPEN: dict[tuple[str, int], str] = {}


def counts(graphs: int) -> dict[str, int]:
    """Return the number of ``graphs`` of each profile."""
    total = sum(SHARES.values())
    return {name: -(-graphs * share // total) for name, share in SHARES.items()}
