"""The command line of burn-import, called in this process."""

from click.testing import CliRunner, Result

from burn_import.cli.command import burn_import


def run(*args: object) -> Result:
    """Return the result of ``burn-import`` with arguments."""
    return CliRunner().invoke(burn_import, [str(arg) for arg in args])
