"""What readers of column values do, told in a form from which the engine's cells are made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from collections.abc import Callable

    Rule = tuple[Any, ...]

F = TypeVar("F", bound="Callable[[Any], Any]")
_RULES: Final[WeakKeyDictionary[Callable[[Any], Any], Rule]] = WeakKeyDictionary()


def ruled(read: F, *rule: Any) -> F:
    """Return a reader, whose rule is kept: the name of what it does, and what it was made from."""
    _RULES[read] = rule
    return read


def rule_of(read: Callable[[Any], Any]) -> Rule | None:
    """Return the rule of a reader, None if it has none."""
    return _RULES.get(read)
