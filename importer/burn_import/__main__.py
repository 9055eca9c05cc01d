"""``python -m burn_import``: the command line."""

from burn_import.cli import main

if __name__ == "__main__":
    main()
