"""Connector options: how a Debezium connector sends values, as its own settings say it."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from cdcavro.change.modes import (
    ADAPTIVE_TIME_MICROSECONDS,
    BINARIES,
    BYTES,
    DECIMALS,
    PRECISE,
    TIMES,
    Modes,
)
from cdcavro.formats.connect_columns import PLACEHOLDER, check_word

if TYPE_CHECKING:
    from collections.abc import Callable


class Sent(NamedTuple):
    """How a connector sends values: its modes, and the word for values that it does not have (str or None)."""

    modes: Modes
    unavailable: str | None


def connector_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command, which gets them as one argument, `sent`."""

    @wraps(command)
    def with_sent(*, decimals: str, times: str, binaries: str, unavailable: str | None, **others: Any) -> Any:
        return command(sent=Sent(Modes(decimals, times, binaries), unavailable), **others)

    for option in reversed(_OPTIONS):
        with_sent = option(with_sent)
    return with_sent


def _word(_ctx: click.Context, _param: click.Parameter, value: str) -> str | None:
    """Return the word for unavailable values, None for an empty one. Raises `click.BadParameter`."""
    try:
        check_word(value or None)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error
    return value or None


_OPTIONS: Final = (
    click.option(
        "--decimals",
        type=click.Choice(DECIMALS),
        default=PRECISE,
        help="How Debezium represents decimals: its connector's decimal.handling.mode. Default: precise.",
    ),
    click.option(
        "--times",
        type=click.Choice(TIMES),
        default=ADAPTIVE_TIME_MICROSECONDS,
        help="How Debezium represents dates and times where no schema says it: its connector's time.precision.mode."
        f" Default: {ADAPTIVE_TIME_MICROSECONDS}.",
    ),
    click.option(
        "--binaries",
        type=click.Choice(BINARIES),
        default=BYTES,
        help="How Debezium represents binary values where no schema says it: its connector's binary.handling.mode."
        " Default: bytes.",
    ),
    click.option(
        "--unavailable",
        metavar="WORD",
        default=PLACEHOLDER,
        callback=_word,
        help="What stands for a value that the source did not give: the connector's unavailable.value.placeholder."
        f" Default: {PLACEHOLDER}; an empty WORD takes every value as it is.",
    ),
)
