"""The command line, made from what `--help` prints: usage, text, options, example."""

from __future__ import annotations

import re
from typing import Final

import click

from cdcavro import cli
from reference import markdown

_PROGRAM: Final = "cdcavro"
_ENDS: Final = re.compile(r"^\s*Example:\s*", re.MULTILINE)


def command_page(_: str = "") -> str:
    """Return the page of all commands."""
    context = click.Context(cli.main, info_name=_PROGRAM, **cli.main.context_settings)
    commands = [(name, cli.main.commands[name]) for name in cli.main.commands]
    rows = ([f"[`{_PROGRAM} {name}`](#{_PROGRAM}-{name})", _prose(_first(command.help))] for name, command in commands)
    parts = [
        _prose(_paragraphs(cli.main.help)),
        markdown.block("console", f"$ {_PROGRAM} --help\n$ {_PROGRAM} COMMAND --help"),
        markdown.table(["Command", "What it does"], rows),
        "## Exit codes",
        _exit_codes(),
    ]
    for name, command in commands:
        parts += [f"({_PROGRAM}-{name})=", f"## {_PROGRAM} {name}", *_command(name, command, context)]
    return markdown.page(*parts)


def _exit_codes() -> str:
    """Return the sentence on exit codes in the docstring of the command line, a line for each of its parts."""
    text = " ".join((cli.__doc__ or "").partition("Exit codes: ")[2].split())
    parts = (re.sub(r"\b([0-9]+)\b", r"`\1`", part) for part in text.rstrip(".").split("; "))
    return "\n".join(f"* {part}" for part in parts)


def _command(name: str, command: click.Command, parent: click.Context) -> list[str]:
    context = click.Context(command, info_name=name, parent=parent)
    return [
        _prose(_paragraphs(command.help)),
        markdown.block("text", " ".join([context.command_path, *command.collect_usage_pieces(context)])),
        *(_option(f"{_PROGRAM} {name}", *record) for record in option_records(command, context)),
        "Example:",
        markdown.block("console", "\n".join(f"$ {line}" for line in examples(command))),
    ]


def option_records(command: click.Command, context: click.Context) -> list[tuple[str, str]]:
    """Return the options of a command as its help lists them: how each is written, and its text.

    The usage says all that there is to say of an argument without a text.
    """
    records = (parameter.get_help_record(context) for parameter in command.get_params(context))
    return [record for record in records if record is not None and record[1]]


def examples(command: click.Command) -> list[str]:
    """Return the lines of a command's example."""
    text = (command.epilog or "").replace("\b", "")
    return [line.strip() for line in _ENDS.sub("", text).strip().splitlines()]


def _option(program: str, written: str, text: str) -> str:
    """Return an option as Sphinx's directive, so that it can be linked to and is found by searching."""
    return markdown.block("{eval-rst}", f".. program:: {program}\n\n.. option:: {written}\n\n   {_rst(text)}")


def _first(help: str | None) -> str:
    return _paragraphs(help).partition("\n\n")[0]


def _paragraphs(help: str | None) -> str:
    """Return a help text with each paragraph in one line, as the terminal sets it anew."""
    paragraphs = (help or "").replace("\b\n", "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def _prose(text: str) -> str:
    """Return help as Markdown: nothing in it is markup but backticks."""
    return re.sub(r"([*_<>\[\]])", r"\\\1", text)


def _rst(text: str) -> str:
    return re.sub(r"`([^`]+)`", r"``\1``", re.sub(r"([*_|\\])", r"\\\1", " ".join(text.split())))
