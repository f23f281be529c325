"""TODO."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from cdcavro.registry.levels import LEVELS
from cdcavro.registry.subjects import STRATEGIES

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
    help="The level by which to judge. Default: the subject's.",
)


def subject_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say which subject a schema goes to."""
    options = (
        click.option("--subject", metavar="NAME", help="The subject, for all schemas given."),
        click.option(
            "--strategy",
            type=click.Choice(STRATEGIES),
            help="How subjects are named: by the topic (TOPIC-value, TOPIC-key), by the record's full name, or by"
            " both. Default: topic if there is --topic, else record.",
        ),
        click.option("--topic", metavar="TOPIC", help="The topic, for names of subjects."),
    )
    for option in reversed(options):
        command = option(command)
    return command
