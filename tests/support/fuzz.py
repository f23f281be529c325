"""Inputs that a fuzzer finds by the branches that they take (atheris), for what reads hostile bytes.

    pip install atheris            # in an environment of its own, with what the project needs
    PYTHONPATH=tests:. python tests/support/fuzz.py encode [CORPUS ...] -max_total_time=300

The targets are `sniff`, `encode` (and back, where the message has to come back), `decode`, `statements`, `schema` and
`changes`. What ends in anything but an error of the project, or does not come back, is a crash, which is written to a file.
What earlier runs found stands in `tests/data/fuzz/`, and `tests/test_fuzz.py` tries it without atheris.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

if __name__ == "__main__":
    import atheris

    with atheris.instrument_imports(include=["cdcavro"]):
        for name in ("change.order", "table.ddl.parse", "table.tables", "transcoding.transcoder", "wire.sniff"):
            import_module(f"cdcavro.{name}")

from cdcavro import decode, encode, from_changes, parse_schema, sniff, to_changes
from cdcavro.errors import CdcAvroError
from cdcavro.exact.jsontext import parse, same
from cdcavro.table.ddl.parse import parse_ddl
from cdcavro.table.tables import Tables
from cdcavro.wire.formats import FORMATS

CORPUS: Final = Path(__file__).parents[1] / "data" / "fuzz"
DIALECTS: Final = ("mysql", "postgresql", "oracle", "sqlserver", None)


def _sniff(data: bytes) -> None:
    sniff(data)


def _encode(data: bytes) -> None:
    format, message = _format(data), data[1:]
    payload = encode(message, format)
    assert same(parse(decode(payload, format)), parse(message))


def _decode(data: bytes) -> None:
    format, payload = _format(data), data[1:]
    text = decode(payload, format)
    assert decode(encode(text, format), format) == text


def _changes(data: bytes) -> None:
    format, tables = _format(data), Tables()
    for change in to_changes(data[1:], format):
        from_changes([change], format)
        tables.add(change)


def _statements(data: bytes) -> None:
    parse_ddl(data[1:].decode(errors="surrogateescape"), DIALECTS[(data or b"\0")[0] % len(DIALECTS)])


def _schema(data: bytes) -> None:
    made = parse_schema(data.decode(errors="surrogateescape"))
    assert parse_schema(made.json) == made
    assert parse_schema(made.canonical).canonical == made.canonical


def _format(data: bytes) -> str:
    return [*FORMATS][(data or b"\0")[0] % len(FORMATS)]


TARGETS: Final[dict[str, Callable[[bytes], None]]] = {
    "sniff": _sniff,
    "encode": _encode,
    "decode": _decode,
    "changes": _changes,
    "statements": _statements,
    "schema": _schema,
}


def tried(target: str, data: bytes) -> None:
    """Try an input; an error of the project is a fine end."""
    try:
        TARGETS[target](data)
    except CdcAvroError:
        return


def main(arguments: list[str]) -> None:
    """Run the fuzzer on a target."""
    own: Any = arguments[1]
    atheris.Setup([arguments[0], *arguments[2:]], lambda data: tried(own, data))
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv)
