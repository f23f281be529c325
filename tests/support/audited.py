"""A trial in a process of its own: hostile messages, schemas and statements are processed under an audit hook.

The hook prints each event that means that something runs, is imported, or leaves the process. It is put in once
everything that is imported late has been imported by messages that are not hostile.
"""

from __future__ import annotations

import base64
import json
import pickle
import sys
from contextlib import suppress
from typing import Any

import cdcavro
from cdcavro.avro.compatibility import verdict
from cdcavro.avro.schema import parse_schema
from cdcavro.change.model import Change, replace
from cdcavro.change.order import order_key
from cdcavro.errors import CdcAvroError
from cdcavro.records.codegen import NamedSchema, generate
from cdcavro.table.tables import Tables
from support.messages import goldens

EVENTS = (
    "import",
    "exec",
    "compile",
    "pickle.",
    "marshal.",
    "subprocess.",
    "os.",
    "socket.",
    "ctypes.",
    "code.",
    "open",
)


class _Bomb:
    """An object whose pickle runs a command when it is loaded."""

    def __reduce__(self) -> Any:
        return print, ("the pickle was loaded",)


PICKLED = pickle.dumps(_Bomb())
JAVA = b"\xac\xed\x00\x05sr\x00\x11java.lang.Runtime"
TEXTS = [
    "__import__('os').system('touch ran')",
    "'); import os; os.system('touch ran') #",
    "$(touch ran)",
    "`touch ran`",
    "{0.__class__.__mro__}",
    "%(ran)s %n",
    "{{ 7 * 7 }}",
    "../../ran",
    "\x00\x1b]0;ran\x07",
    "'; DROP TABLE t; --",
    "!!python/object/apply:os.system ['touch ran']",
    base64.b64encode(PICKLED).decode(),
    base64.b64encode(JAVA).decode(),
    PICKLED.decode("latin-1"),
]


def _hostile(value: Any, text: str) -> Any:
    """Return a message with a text for each of its strings and, beside it, each of its names."""
    if isinstance(value, dict):
        return {name: _hostile(item, text) for name, item in value.items()} | {text: text}
    if isinstance(value, list):
        return [_hostile(item, text) for item in value]
    return text if isinstance(value, str) and value.islower() else value


def process(message: bytes, format: str) -> int:
    """Do everything with a message that the package does; return how many steps were taken without an error."""
    done = 0
    tables = Tables()
    with suppress(CdcAvroError):
        cdcavro.sniff(message)
        done += 1
    with suppress(CdcAvroError):
        cdcavro.decode(cdcavro.encode(message, format), format)
        done += 1
    changes: list[Change] = []
    with suppress(CdcAvroError):
        changes = cdcavro.to_changes(message, format)
        cdcavro.from_changes(changes, format)
        done += 1
    for target in cdcavro.FORMATS:
        with suppress(CdcAvroError):
            cdcavro.transcode(message, format, target)
    for change in changes:
        for ddl in (
            change.ddl,
            f"ALTER TABLE `{change.source.table}` ADD `{(change.ddl_meta or '')[:20]}` INT DEFAULT '1'",
        ):
            with suppress(CdcAvroError):
                tables.add(replace(change, ddl=ddl, op="ALTER" if ddl else change.op))
                done += 1
        with suppress(CdcAvroError):
            tables.add(Change.from_avro(change.to_avro()))
        with suppress(CdcAvroError):
            order_key(change)
    for table in tables.tables:
        with suppress(CdcAvroError):
            generate([NamedSchema("t", table.schema.envelope)], "dataclass")
            verdict(table.schema.envelope, table.versions[0].envelope)
            done += 1
    return done


def process_schema(text: str) -> None:
    """Read a schema whose names, docs, defaults and attributes are a text."""
    field = {"name": "a", "type": "string", "default": text, "doc": text, text: text}
    for name in ("R", text):
        with suppress(CdcAvroError):
            schema = parse_schema(
                json.dumps({"type": "record", "name": name, "doc": text, "aliases": [text], "fields": [field]})
            )
            verdict(schema, schema)
        with suppress(CdcAvroError):
            schema = parse_schema(json.dumps({"type": "record", "name": name, "doc": text, "fields": [field]}))
            generate([NamedSchema("t", schema)], "dataclass")
    for payload in (PICKLED, JAVA, text.encode()):
        for format in cdcavro.FORMATS:
            with suppress(CdcAvroError):
                cdcavro.decode(payload, format)


def main() -> None:
    """Run the trial, and print the events and how much was done."""
    messages = [(message, format) for format in cdcavro.FORMATS for message in goldens(format)[:4]]
    hostile = [
        (json.dumps(_hostile(json.loads(message), text)).encode(), format)
        for message, format in messages
        for text in TEXTS
    ]
    for message, format in messages:
        process(message, format)
    process_schema("fine")
    process(*hostile[0])
    seen: set[str] = set()
    is_on = True

    def hook(event: str, arguments: Any) -> None:
        if is_on and event.startswith(EVENTS):
            seen.add(f"{event} {arguments!r:.200}")

    sys.addaudithook(hook)
    done = sum(process(message, format) for message, format in [*messages, *hostile])
    for text in TEXTS:
        process_schema(text)
    is_on = False
    told = {"events": sorted(seen), "messages": len(messages) + len(hostile), "done": done}
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main()
