"""Secrets in a configuration, which nothing shows: passwords, and whatever came from a variable of the environment."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import quote, unquote

import msgspec
from msgspec import Struct

from cdcavro.errors import CdcAvroError, FileError, visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Self

T = TypeVar("T")

_VARIABLE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
# A password may have a slash. What looks like a port is one, except where stores of objects are addressed by a bucket.
_PASSWORD: Final = re.compile(r"://[^/@]*:(?![0-9]{1,5}/)[^@]*@|(?:s3[an]?|oss|obs|cosn?|gs)://[^/@]*:[^@]*@")
_IN_ADDRESS: Final = re.compile(r"://([^/@:]*):([^@]*)@")
# What has these is no name whose parts are used alone, but an address or a login.
_NO_NAME: Final = re.compile("[/:=]")
_QUOTED: Final = re.compile("[\"']([^\"']+)[\"']")
# What a login states without quotes.
_STATED: Final = re.compile(r"(?:^|\s)[\w.]+\s*=\s*([^\s;\"']+)")
# What is shorter may be a word of any sentence: it is hidden where a value stands alone.
_LONG: Final = 4
_CUT: Final = "..."
# How many characters of a text that is cut are looked at.
_LOOKED_AT: Final = 400


# The names of properties whose values are secret, and such values in an address.
_TELLING: Final = "credential|token|secret|password|key|header|connection-string|sas"
_SECRET: Final = re.compile(_TELLING, re.IGNORECASE)
_IN_QUERY: Final = re.compile(rf"[?&][^=&]*(?:{_TELLING})[^=&]*=([^&#]+)", re.IGNORECASE)

_SWITCHES: Final = frozenset({"true", "false"})


class FromVariable(str):
    """A text with the values of variables of the environment, or another secret one. Its repr is the text as the configuration states it."""

    __slots__ = ("stated", "variables")
    # The text as the configuration states it.
    stated: str
    # The values of the variables by name.
    variables: Mapping[str, str]

    def __new__(cls, text: str, stated: str, variables: Mapping[str, str]) -> Self:
        """Return a text; `stated` and `variables` are the attributes."""
        variable = super().__new__(cls, text)
        variable.stated, variable.variables = stated, variables
        return variable

    def __repr__(self) -> str:
        return repr(self.stated)

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        """Pickle the text alone, for processes of Spark that need no more."""
        return str, (str(self),)


class Redaction:
    """Replaces values of variables by the variables' names in any text, also if they are escaped or cut there."""

    def __init__(self, texts: Iterable[FromVariable] = ()) -> None:
        self._texts, self._names = [*texts], dict[str, str]()
        for text in self._texts:
            for form in _forms(text):
                self._names.setdefault(form, text.stated)
            for name, value in text.variables.items():
                for piece in _pieces(value):
                    for form in _forms(piece) if len(piece) >= _LONG else ():
                        self._names.setdefault(form, f"${{{name}}}")
        longest_first = sorted(self._names, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(_pattern, longest_first))) if longest_first else None

    def beside(self, section: Mapping[str, str]) -> Redaction:
        """Return what hides the secret texts of a section, too."""
        return Redaction([*self._texts, *_from_variables(dict(section))])

    def of(self, value: T) -> T:
        """Return a value whose texts show no secret: a text, a list, a dict, a dataclass or a `Struct`."""
        redacted: Any = value if self._pattern is None else self._redact(value)
        return redacted  # type: ignore[no-any-return]

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Let errors of the block show no secret, neither themselves nor by what they were raised from."""
        try:
            yield
        except (CdcAvroError, OSError) as error:
            if self._pattern is None:
                raise
            for name, value in vars(error).items():
                setattr(error, name, self.of(value))
            error.args = self.of(error.args)
            if isinstance(error, OSError) and error.filename is not None:
                error.filename = self.of(str(error.filename))
            raise error from None

    def _redact(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._redact_text(value)
        if isinstance(value, dict):
            redacted: dict[Any, Any] = {}
            for name, one in value.items():
                key = self._redact(name)
                while key in redacted:
                    key += "'"
                redacted[key] = self._redact(one)
            return redacted
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*map(self._redact, value))
        if isinstance(value, (list, tuple)):
            return type(value)(map(self._redact, value))
        if isinstance(value, Struct):
            return msgspec.structs.replace(
                value, **{name: self._redact(getattr(value, name)) for name in value.__struct_fields__}
            )
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            own = [field.name for field in dataclasses.fields(value)]
            return dataclasses.replace(value, **{name: self._redact(getattr(value, name)) for name in own})
        return value

    def _redact_text(self, text: str) -> str:
        if self._pattern is None:
            return text
        parts = self._pattern.sub(lambda found: self._names[found[0]], text).split(_CUT)
        return _CUT.join([*map(self._redact_end, parts[:-1]), parts[-1]])

    def _redact_end(self, text: str) -> str:
        """Return a text that was cut at its end, without the beginning of a secret there."""
        for form, name in self._names.items():
            for length in range(min(len(form), len(text), _LOOKED_AT), _LONG - 1, -1):
                if text.endswith(form[:length]):
                    return text[:-length] + name
        return text


def fill_variables(value: Any, path: str) -> Any:
    """Return a value with its variables replaced. Raises `FileError` for one that is not set."""
    if isinstance(value, dict):
        return {name: fill_variables(one, path) for name, one in value.items()}
    if isinstance(value, list):
        return [fill_variables(one, path) for one in value]
    if not isinstance(value, str) or _VARIABLE.search(value) is None:
        return value
    variables = {name: _variable(name, path) for name in _VARIABLE.findall(value)}
    return FromVariable(_VARIABLE.sub(lambda found: variables[found[1]], value), value, variables)


def _variable(name: str, path: str) -> str:
    if name not in os.environ:
        raise FileError(path, f"the environment variable {name}", "none")
    return os.environ[name]


def redaction_of(config: Any) -> Redaction:
    """Return what hides the texts of a configuration, or of its members, that came from variables."""
    return Redaction(_from_variables(config))


def _from_variables(value: Any) -> Iterator[FromVariable]:
    if isinstance(value, FromVariable):
        yield value
    elif isinstance(value, Struct):
        for name in value.__struct_fields__:
            yield from _from_variables(getattr(value, name))
    elif isinstance(value, (dict, list)):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _from_variables(one)


def _pieces(value: str) -> list[str]:
    """Return a value, and what of it is used alone.

    These are servers, the parts of a name, what a login states, and user, password and secret values of an address.
    """
    parts = [part for found in _IN_ADDRESS.findall(value) for part in found] + _IN_QUERY.findall(value)
    parts += [unquote(part) for part in parts]
    names = [] if _NO_NAME.search(value) else value.split(".")
    stated = [one for one in _STATED.findall(value) if one.lower() not in _SWITCHES]
    return [value, *value.split(","), *_QUOTED.findall(value), *stated, *parts, *names]


def _forms(text: str) -> set[str]:
    """Return how sentences write a text that is no small number: as it is, escaped, quoted, as a path or an address."""
    other = {os.path.normpath(text)} if "/" in text else {text.replace(".", "/"), text.replace(".", "`.`")}
    spellings = {text, text.strip(), *other}
    forms: set[str] = set()
    for one in map(str, spellings):
        forms |= {
            one,
            ascii(one)[1:-1],
            repr(one)[1:-1],
            visible(repr(one))[1:-1],
            json.dumps(one)[1:-1],
            quote(one),
            quote(one, safe=""),
        }
    return {form for form in forms if form and not (form.isdigit() and len(form) < _LONG)}


def _pattern(form: str) -> str:
    escaped = re.escape(form)
    return escaped if len(form) >= _LONG else rf"(?:(?<=['\"/=])|\A){escaped}(?=['\"/,:]|\Z)"


def check_addresses(addresses: Mapping[str, str | None]) -> None:
    """Raise `ValueError` for an empty address, and, without showing it, for one with user and password: it is written."""
    for name, address in addresses.items():
        if address is not None and not address.strip():
            raise ValueError(f"{name} is empty: it names a place, or is left out")
        if address is not None and (_PASSWORD.search(address) or (name == "kafka" and "@" in address)):
            raise ValueError(f"an address without user and password as {name}, which belong in options or [spark]")


def hide_secrets(properties: Mapping[str, str], section: str) -> dict[str, str]:
    """Return the properties of a section, whose values are hidden, as those of variables are, if names or logins say so."""

    def hidden(name: str, value: str) -> str:
        is_secret = (
            (_SECRET.search(name) and value.lower() not in _SWITCHES)
            or _PASSWORD.search(value)
            or _IN_QUERY.search(value)
        )
        is_new = is_secret and not isinstance(value, FromVariable)
        return FromVariable(value, "...", {f"{section}.{name}": value}) if is_new else value

    return {name: hidden(name, value) for name, value in properties.items()}


def safe_repr(config: Struct, hidden: str) -> str:
    """Return the representation of a configuration without the values of the settings under one name."""
    values = {name: getattr(config, name) for name in config.__struct_fields__}
    values[hidden] = dict.fromkeys(values[hidden], "...")
    return f"{type(config).__name__}({', '.join(f'{name}={value!r}' for name, value in values.items())})"


def redaction_pattern(names: Iterable[str], own: str | None) -> str:
    """Return the regular expression by which Spark hides settings with these names, besides the user's `own`."""
    return "|".join([*([own] if own else []), *map(re.escape, names)])


def from_variables(section: Any) -> list[str]:
    """Return the names of settings whose texts have variables."""
    settings = section.items() if isinstance(section, dict) else ()
    return [name for name, value in settings if isinstance(value, str) and _VARIABLE.search(value)]
