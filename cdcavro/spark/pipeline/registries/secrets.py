"""Secrets in a configuration, which nothing shows."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from msgspec import Struct

_PASSWORD: Final = re.compile(r"://[^/]*:[^/]*@")


def check_addresses(addresses: Mapping[str, str | None]) -> None:
    """Raise `ValueError`, which does not show it, for an address with a user and a password: what is written names it."""
    for name, address in addresses.items():
        if address is not None and (_PASSWORD.search(address) or (name == "kafka" and "@" in address)):
            raise ValueError(f"an address without user and password as {name}, which belong in options or [spark]")


def safe_repr(config: Struct, hidden: str) -> str:
    """Return the representation of a configuration, of whose settings under one name the values are not shown."""
    values = {name: getattr(config, name) for name in config.__struct_fields__}
    values[hidden] = dict.fromkeys(values[hidden], "...")
    return f"{type(config).__name__}({', '.join(f'{name}={value!r}' for name, value in values.items())})"


def hiding(names: Iterable[str], own: str | None) -> str:
    """Return the regular expression by which Spark hides settings with these names, beside its user's `own`."""
    return "|".join([*([own] if own else []), *map(re.escape, names)])


def from_variables(section: Any, variable: re.Pattern[str]) -> list[str]:
    """Return the names of settings whose texts have variables."""
    settings = section.items() if isinstance(section, dict) else ()
    return [name for name, value in settings if isinstance(value, str) and variable.search(value)]
