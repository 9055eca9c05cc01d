"""The skeletons of generated source, and the environment that fills them."""

from functools import lru_cache
from typing import Any


@lru_cache(maxsize=1)
def _environment() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("burn_templates", "."),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # the values are Python source, made safe by the compiler
    )


def render(template: str, **values: Any) -> str:
    """The text of ``template`` (a file name here) with ``values`` filled in.

    Raises:
        jinja2.UndefinedError: a value that the template names is missing.
    """
    text: str = _environment().get_template(template).render(**values)
    return text
