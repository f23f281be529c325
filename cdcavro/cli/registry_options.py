"""Options that the commands on registries share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from cdcavro.registry.subjects import LEVELS, STRATEGIES

if TYPE_CHECKING:
    from collections.abc import Callable


BREAKS: Final = 1
registry_option: Final = click.option(
    "--registry",
    "url",
    required=True,
    envvar="CDCAVRO_REGISTRY",
    metavar="URL",
    help="https://HOST/PATH of a server with Confluent's REST API, or file:FOLDER. Default: $CDCAVRO_REGISTRY."
    " User and password come from $CDCAVRO_REGISTRY_USER and $CDCAVRO_REGISTRY_PASSWORD.",
)
compatibility_option: Final = click.option(
    "--compatibility",
    type=click.Choice(LEVELS, case_sensitive=False),
    help="The compatibility level. Default: that of the subject.",
)


def subject_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command with the options that name the subject of a schema."""
    options = (
        click.option("--subject", metavar="NAME", help="The subject of all the schemas."),
        click.option(
            "--strategy",
            type=click.Choice(STRATEGIES),
            help="How subjects are named: after the topic (TOPIC-value, TOPIC-key), after the record (its full name),"
            " or after both. Default: topic with --topic, else record.",
        ),
        click.option("--topic", metavar="TOPIC", help="The topic that subjects are named after."),
    )
    for option in reversed(options):
        command = option(command)
    return command
