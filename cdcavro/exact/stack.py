"""Python's stack, which a caller may have used up before something nested is read."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
T = TypeVar("T")

EXPECTED = "less nesting, or a caller that is itself nested less"
GOT = "more than Python's stack has room for"


def within_stack(error: Callable[[], Exception]) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Return a decorator of functions that raise an error of the project where the stack does not suffice."""

    def decorated(function: Callable[P, T]) -> Callable[P, T]:
        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            try:
                return function(*args, **kwargs)
            except RecursionError:
                raise error() from None

        return call

    return decorated
