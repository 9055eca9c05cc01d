"""Library-specific source that is no call of a primitive."""

from burn.dtypes import DType
from burn_import.tracing.identifiers import dtype_source


class BurnSource:
    """Source for reading and replacing arrays; subclassed for other targets."""

    def __init__(self) -> None:
        #: Library modules that the source must import.
        self.modules: set[str] = set()

    def limit(self, dtype: DType, end: str) -> str:
        """Return the source of an end, ``min`` or ``max``, of a floating dtype."""
        self.modules.add("burn")
        return f"burn.finfo({dtype_source(dtype)}).{end}"

    @staticmethod
    def stored_value(attribute: str) -> str:
        """Return the source that reads a stored array as a tensor."""
        return f"{attribute}.value"

    @staticmethod
    def replacement(attribute: str, value: str) -> str:
        """Return the statement that replaces a stored array."""
        return f"{attribute}.set({value})"

    @staticmethod
    def one_number(shape: tuple[int, ...], value: int) -> str:
        """Return the source of an int64 tensor of one element."""
        return f"ops.full({shape}, value={value})"

    def gradient(self, function: str, inputs: str, others: str) -> str:
        """Return the source of a local function's derivatives by its first inputs."""
        self.modules.add("ops")
        rest = f", [{others}]" if others else ""
        return f"ops.gradient({function}, [{inputs}]{rest})"
