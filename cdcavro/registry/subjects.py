"""Names of subjects by Confluent's subject name strategies, which its serialisers use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from cdcavro.avro.types import Named, branch_name
from cdcavro.errors import SchemaError

if TYPE_CHECKING:
    from cdcavro.avro.schema import Schema

Strategy = Literal["topic", "record", "topic-record"]
STRATEGIES: Final[tuple[Strategy, ...]] = ("topic", "record", "topic-record")
MAX_NAME: Final = 1000


def subject_name(strategy: Strategy, schema: Schema, *, topic: str | None = None, is_key: bool = False) -> str:
    """Return the name of a schema's subject.

    `strategy` is "topic" (`TOPIC-value`, or `TOPIC-key` for a key), "record" (the full name of the
    record) or "topic-record" (`TOPIC-RECORD`). Raises `SchemaError` if the strategy needs the name
    of a schema that has none, and ValueError for a strategy without its topic or an unknown one.

    >>> from cdcavro.avro.schema import parse_schema
    >>> schema = parse_schema('{"type": "fixed", "name": "a.F", "size": 1}')
    >>> [subject_name(strategy, schema, topic="t") for strategy in STRATEGIES]
    ['t-value', 'a.F', 't-a.F']
    """
    if strategy != "record" and not topic:
        raise ValueError(f"the strategy {strategy} needs a topic")
    match strategy:
        case "topic":
            return f"{topic}-{'key' if is_key else 'value'}"
        case "record":
            return _record(schema)
        case "topic-record":
            return f"{topic}-{_record(schema)}"
    raise ValueError(f"the strategies are {', '.join(STRATEGIES)}, not {strategy!r}")


def _record(schema: Schema) -> str:
    root = schema.root
    if not isinstance(root, Named):
        kind = "union" if not hasattr(root, "name") and hasattr(root, "branches") else branch_name(root)
        raise SchemaError("$", f"expected a type with a name for the subject, got {kind}")
    return root.name


def fault_of_subject(name: object) -> str | None:
    """Return a sentence about what is wrong with a subject's name; None if nothing is."""
    if not isinstance(name, str) or not name:
        return "a subject's name is a text, and not an empty one"
    if len(name) > MAX_NAME:
        return f"a subject's name has at most {MAX_NAME:,} characters"
    if not name.isprintable() or name in (".", ".."):
        return "a subject's name holds no control characters and is neither . nor .."
    return None
