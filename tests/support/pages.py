"""The pages for people: README, what stands beside it, and `docs/`, with the blocks of code that they show.

A page's blocks are run in their order, in one folder that is empty at first. What each language means:

| language | what becomes of it |
| --- | --- |
| `python` | is run; all blocks of a page share their names. What it prints is the `output` block right behind it or, without one, the comments behind its calls of `print`, and of `show` for a row of a table |
| `output` | what the `python` block before it prints |
| `console` | each `$ ` line is run, here-documents and lines that end in a backslash with it, and says what stands below it. It ends with 0, unless `$ echo $?` follows |
| `sh` | commands for the reader's own machine: they must parse, and what they name must be there |
| `json` | one JSON value or several |
| `avsc` | an Avro schema |
| `toml` | the configuration of a pipeline |

`...` stands for anything in what a page shows. The reference is made from the code, and checked where it is made.
"""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import chdir, contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Final
from unittest.mock import patch

from click.testing import BytesIOCopy, CliRunner, _NamedTextIOWrapper

import cdcavro
from cdcavro.cli import main
from support.places import ROOT

DOCS: Final = ROOT / "docs"
RUN: Final = frozenset({"python", "output", "console"})
CHECKED: Final = frozenset({"sh", "json", "avsc", "toml"})
_FENCE: Final = re.compile(r"^( *)(`{3,})([^\n`]*)\n(.*?)^\1\2 *$", re.DOTALL | re.MULTILINE)
_SAID: Final = re.compile(r"^.*\b(?:print|show)\(.*?\) +# (.*)$", re.MULTILINE)
_HERE: Final = re.compile(r"<<\s*'?(\w+)'?")
_SHELL: Final = frozenset("|<>&;$`")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language or directive, its text without the fence, and the line that it begins in."""

    page: Path
    language: str
    text: str
    line: int

    @property
    def place(self) -> str:
        """Where it stands, for a sentence."""
        return f"{name_of(self.page)}:{self.line}"


@dataclass(frozen=True)
class Command:
    """A command of a `console` block, and what is shown below it."""

    text: str
    shown: str


def all_pages() -> list[Path]:
    """Return the pages, README first; those of the reference are made from the code and not among them."""
    written = [
        page for page in sorted(DOCS.rglob("*.md")) if page.relative_to(DOCS).parts[0] not in ("reference", "_build")
    ]
    return [ROOT / "README.md", *sorted({*ROOT.glob("*.md")} - {ROOT / "README.md"}), *written]


def name_of(page: Path) -> str:
    """Return a page's path within the repository."""
    return page.relative_to(ROOT).as_posix()


@cache
def blocks(page: Path) -> tuple[Block, ...]:
    """Return the fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    return tuple(
        Block(
            page,
            match[3].strip(),
            re.sub(f"^{match[1]}", "", match[4], flags=re.MULTILINE),
            text.count("\n", 0, match.start()) + 1,
        )
        for match in _FENCE.finditer(text)
    )


def prose(page: Path) -> str:
    """Return a page without its blocks."""
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def runs(page: Path) -> bool:
    """Whether there is anything to run in a page."""
    return any(block.language in RUN for block in blocks(page))


def needs_spark(page: Path) -> bool:
    """Whether a page's examples need Java and a Spark session."""
    found = [block for block in blocks(page) if block.language in RUN]
    return any(
        re.search(r"\bpyspark\b|cdcavro import spark|^\$ cdcavro run\b", block.text, re.MULTILINE) for block in found
    )


def run_page(page: Path, folder: Path, instead: Mapping[str, str] | None = None) -> int:
    """Run the blocks of a page in a folder and hold what they say against what is shown; return how many ran.

    `instead` has what stands in for parts of their text, such as ports that are free.
    """
    names: dict[str, object] = {"__name__": "__main__"}
    own = [block for block in blocks(page) if block.language in RUN]
    for old, new in (instead or {}).items():
        own = [replace(block, text=block.text.replace(old, new)) for block in own]
    with chdir(folder), _importing_from(folder):
        for number, block in enumerate(own):
            behind = own[number + 1] if number + 1 < len(own) else None
            if block.language == "python":
                _run_python(block, names, behind if behind is not None and behind.language == "output" else None)
            elif block.language == "console":
                _run_console(block)
            else:
                assert own[number - 1].language == "python", f"{block.place}: what printed this?"
    return len(own)


@contextmanager
def _importing_from(folder: Path) -> Iterator[None]:
    """Let modules that a page makes be imported, and forget them after it."""
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        for name, module in list(sys.modules.items()):
            if (getattr(module, "__file__", None) or "").startswith(str(folder)):
                del sys.modules[name]


def _run_python(block: Block, names: dict[str, object], output: Block | None) -> None:
    said = python_output(block, names)
    if output is not None:
        assert matches(output.text, said), f"{output.place}: {said}"
        return
    comments = _SAID.findall(block.text)
    lines = iter(said.splitlines())
    if ".show(" in block.text:
        assert all(comment in lines for comment in comments), f"{block.place}: {said}"
        assert comments, f"{block.place} shows a table, and does not say what is in it"
    else:
        assert matches("\n".join(comments), said), f"{block.place}: {said}"


def python_output(block: Block, names: dict[str, object]) -> str:
    """Run a block of Python among the names of its page, and return what it prints."""
    code = "\n" * block.line + block.text
    with redirect_stdout(io.StringIO()) as out:
        exec(compile(code, name_of(block.page), "exec", dont_inherit=True), names)
    return out.getvalue()


def _run_console(block: Block) -> None:
    code = 0
    for command in commands(block.text):
        if command.text == "echo $?":
            assert command.shown == f"{code}\n", block.place
            code = 0
            continue
        assert code == 0, f"{block.place}: what comes before `$ {command.text}` ends with {code}"
        code, said = console_output(command.text)
        assert matches(command.shown, said), f"{block.place}: $ {command.text}\n{said}"
    assert code == 0, f"{block.place} ends with {code}"


def commands(text: str) -> list[Command]:
    """Take a `console` block apart."""
    found: list[list[str]] = []
    lines = iter(text.splitlines())
    for line in lines:
        if re.match(r"\$ \S", line) is None:
            assert found, f"no command says {line!r}"
            found[-1].append(line)
            continue
        words = [line.removeprefix("$ ")]
        here = _HERE.search(line)
        while words[-1] != here[1] if here else words[-1].endswith("\\"):
            words.append(next(lines))
        found.append(["\n".join(words)])
    return [Command(command, "".join(f"{line}\n" for line in shown)) for command, *shown in found]


def console_output(command: str) -> tuple[int, str]:
    """Run a command; return its exit code and all it says, in its order.

    One of cdcavro without a pipe runs in this process, but for those that say on standard error how far they are.
    """
    if re.match(r"cdcavro (?!run |sync -(?!.* --quiet))", command) and not _SHELL & {*_unquoted(command)}:
        # Standard error is written by lines, as it is outside of Click's streams.
        by_lines = patch("click.testing._NamedTextIOWrapper", partial(_NamedTextIOWrapper, line_buffering=True))
        with by_lines, patch.object(BytesIOCopy, "writelines", _write_each, create=True):
            done = CliRunner().invoke(main, shlex.split(command)[1:], prog_name="cdcavro")
        return done.exit_code, done.output
    root = str(Path(cdcavro.__file__).parents[1])
    start = f'cdcavro() {{ {shlex.quote(sys.executable)} -c \'from cdcavro.cli import main; main(prog_name="cdcavro")\' "$@"; }}'
    ended = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {start}\n{command}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        env=os.environ
        | {
            "PYTHONPATH": os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])]),
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        },
    )
    return ended.returncode, ended.stdout


def _write_each(stream: BytesIOCopy, pieces: Iterable[bytes]) -> None:
    """Write pieces one by one, as Click's stream copies what is written so only."""
    for piece in pieces:
        stream.write(piece)


def _unquoted(command: str) -> str:
    return re.sub(r"'[^']*'|\"[^\"$`]*\"", "", command)


def matches(shown: str, said: str) -> bool:
    """Whether a text is what is shown, in which `...` stands for anything and blanks at the ends of lines for nothing."""
    shown, said = (re.sub(r"[ \t]+$", "", text.strip("\n"), flags=re.MULTILINE) for text in (shown, said))
    pattern = ".*".join(re.escape(part) for part in shown.split("..."))
    return re.fullmatch(pattern, said, re.DOTALL) is not None


def json_values(text: str) -> list[object]:
    """Read the JSON values that stand one behind another."""
    decoder, values, rest = json.JSONDecoder(), [], text.strip()
    while rest:
        value, end = decoder.raw_decode(rest)
        values.append(value)
        rest = rest[end:].lstrip()
    return values
