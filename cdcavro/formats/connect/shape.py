"""The shapes of Debezium's JSON: a Kafka record or a value alone, with or without embedded schemas."""

from __future__ import annotations

from typing import Any, NamedTuple

_WRAPPED = frozenset({"schema", "payload"})


class Shape(NamedTuple):
    """The shape of a line: whether it is a Kafka record, and whether its value and its key come with schemas."""

    is_record: bool
    has_schema: bool
    has_key_schema: bool

    def __str__(self) -> str:
        kind = "a Kafka record" if self.is_record else "a value alone"
        return f"{kind}, {'with' if self.has_schema or self.has_key_schema else 'without'} embedded schemas"


def shape_of(line: dict[str, Any]) -> Shape:
    """Return the shape of a line.

    >>> str(shape_of({"key": {"id": 1}, "value": {"op": "d"}}))
    'a Kafka record, without embedded schemas'
    """
    is_record = "value" in line
    value, key = (line["value"], line.get("key")) if is_record else (line, None)
    has_schema = type(value) is dict and not _WRAPPED.isdisjoint(value)
    return Shape(is_record, has_schema, type(key) is dict and set(key) == _WRAPPED)


def in_shape(line: dict[str, Any], shape: Shape) -> dict[str, Any]:
    """Return a line without schemas in another shape; missing schemas and keys are not made up.

    >>> in_shape({"op": "d"}, Shape(True, True, False))
    {'value': {'payload': {'op': 'd'}}}
    """
    value = line.get("value", line)
    if shape.has_schema:
        value = {"payload": value}
    if not shape.is_record:
        return value if type(value) is dict else line
    if "key" not in line:
        return {"value": value}
    return {"key": {"payload": line["key"]} if shape.has_key_schema else line["key"], "value": value}
