"""The device of standalone modules."""


class Backend:
    """A device, of which there is none here: everything runs on NumPy."""
