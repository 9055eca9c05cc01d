"""The table of rules, by the target of a call: ``aten.add.Tensor``."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

Rule = Callable[..., Any]
F = TypeVar("F", bound=Rule)


@dataclass(frozen=True)
class Entry:
    """The rule for calls of one target."""

    rule: Rule
    #: The argument that the call changes in place to its result, if any.
    mutates: str | None = None
    #: Whether the result may be a view of the first argument.
    views: bool = False
    #: Arguments changed in place, to the last values that the rule returns.
    writes: tuple[str, ...] = ()
    #: Whether the result is the first argument itself, unless that must be copied.
    is_alias: bool = False
    #: Whether a subgraph argument is inlined.
    is_inlined: bool = False


RULES: dict[str, Entry] = {}
#: The rules of calls with complex operands or results.
COMPLEX: dict[str, Entry] = {}


def rule(
    *targets: str,
    views: bool = False,
    mutates: str | None = None,
    writes: tuple[str, ...] = (),
    is_alias: bool = False,
    is_inlined: bool = False,
    table: dict[str, Entry] = RULES,
) -> Callable[[F], F]:
    """Return a decorator that registers a rule for targets without ``torch.ops.``.

    ``aten.add_.Tensor``, which changes ``self`` in place, is registered with the rule
    of ``aten.add.Tensor`` unless it has its own; so is ``aten.__iand__.Tensor`` with
    that of ``aten.__and__.Tensor``.
    """

    def register(function: F) -> F:
        for target in targets:
            assert target not in table or table[target].mutates, target
            table[target] = Entry(
                function, mutates, views, writes, is_alias, is_inlined
            )
            family, _, rest = target.partition(".")
            name, _, overload = rest.partition(".")
            if family == "aten" and (name.startswith("__") or not name.endswith("_")):
                name = f"__i{name[2:]}" if name.startswith("__") else f"{name}_"
                in_place = f"{family}.{name}.{overload}"
                table.setdefault(in_place, Entry(function, mutates="self"))
        return function

    return register
