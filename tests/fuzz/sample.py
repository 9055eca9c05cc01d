"""Seeds of the sample that are known not to be right, with what is open about each."""

OPEN: dict[int, str] = {}
