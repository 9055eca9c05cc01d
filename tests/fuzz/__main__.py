"""``python -m tests.fuzz``."""

from tests.fuzz.runner import main

main()
