"""Reshapes of calls of one module whose targets have several ranks."""

from burn_import.structure.calls.grouping import _opened


def test_a_scalar_beside_vectors_has_no_common_target() -> None:
    assert _opened([[], [4]]) == []
    assert _opened([[4], []]) == []
    assert _opened([[2, 3], [5, 3]]) == [-1, 3]
