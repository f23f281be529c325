"""Pairs of schemas that differ here and there, and what fastavro makes of the data of the older one."""

from __future__ import annotations

import copy
import io
import json
import random
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import fastavro
from hypothesis import reject
from hypothesis import strategies as st

from cdcavro.avro.compatibility import verdict
from cdcavro.avro.resolution import resolve
from cdcavro.avro.schema import parse_schema
from cdcavro.errors import SchemaError
from support.schema_data import cover, expected, is_same, write

if TYPE_CHECKING:
    from cdcavro.avro.compatibility import Verdict
    from cdcavro.avro.resolution import Step

PLAIN = ["boolean", "int", "long", "float", "double", "bytes", "string"]
LOGICAL = [
    {"type": "int", "logicalType": "date"},
    {"type": "int", "logicalType": "time-millis"},
    {"type": "long", "logicalType": "time-micros"},
    {"type": "long", "logicalType": "timestamp-millis"},
    {"type": "long", "logicalType": "timestamp-micros"},
    {"type": "long", "logicalType": "local-timestamp-micros"},
    {"type": "string", "logicalType": "uuid"},
    {"type": "long", "logicalType": "of-another-world"},
    {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2},
    {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2},
    {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 1},
]
PROMOTED = {
    "int": ["long", "float", "double"],
    "long": ["float", "double"],
    "float": ["double"],
    "string": ["bytes"],
    "bytes": ["string"],
}
SYMBOLS = ["A", "B", "C", "D"]


class Maker:
    """Makes a schema at random, and then another one that differs from it here and there."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.count = 0

    def name(self, kind: str) -> str:
        """Make a name that was not there."""
        self.count += 1
        return f"{kind}{self.count}"

    def schema(self) -> dict[str, Any]:
        """Make a record of one to four fields."""
        return self.record(3)

    def record(self, depth: int) -> dict[str, Any]:
        """Make a record, with few types within it that go on."""
        fields = [self.field(depth - 1) for _ in range(self.rng.randint(1, 4))]
        return {"type": "record", "name": "n." + self.name("R"), "fields": fields}

    def field(self, depth: int) -> dict[str, Any]:
        """Make a field, some with a default."""
        made = {"name": self.name("f"), "type": self.type(depth)}
        if self.rng.random() < 0.3:
            made["default"] = self.default(made["type"])
        return made

    def type(self, depth: int, *, plain: bool = False) -> Any:
        """Make a type; `plain` ones are no unions."""
        kinds = ["plain", "plain", "logical", "enum", "fixed"]
        if depth > 0:
            kinds += ["array", "map", "record"] + ["union", "union"] * (not plain)
        match self.rng.choice(kinds):
            case "plain":
                return self.rng.choice(PLAIN)
            case "logical":
                return copy.deepcopy(self.rng.choice(LOGICAL))
            case "enum":
                return {"type": "enum", "name": "n." + self.name("E"), "symbols": SYMBOLS[: self.rng.randint(1, 3)]}
            case "fixed":
                made = {"type": "fixed", "name": "n." + self.name("F"), "size": self.rng.choice([2, 12])}
                units = [{}, {"logicalType": "decimal", "precision": 3, "scale": 1}]
                return {**made, **self.rng.choice(units)}
            case "array":
                return {"type": "array", "items": self.type(depth - 1)}
            case "map":
                return {"type": "map", "values": self.type(depth - 1)}
            case "record":
                return self.record(depth)
            case _:
                return self.union(depth)

    def union(self, depth: int) -> list[Any]:
        """Make a union, mostly with null."""
        made: list[Any] = ["null"] if self.rng.random() < 0.7 else []
        for _ in range(self.rng.randint(1, 3)):
            one = self.type(depth - 1, plain=True)
            if _kind(one) not in map(_kind, made):
                made.insert(self.rng.randint(0, len(made)), one)
        return made

    def default(self, declared: Any) -> Any:
        """Make a default as the JSON of a schema has it."""
        if isinstance(declared, list):
            return self.default(declared[0])
        if isinstance(declared, dict) and declared["type"] in ("record", "enum", "fixed", "array", "map"):
            made = {
                "record": lambda: {one["name"]: self.default(one["type"]) for one in declared["fields"]},
                "enum": lambda: declared["symbols"][0],
                "fixed": lambda: "\x00" * declared["size"],
                "array": list,
                "map": dict,
            }
            return made[declared["type"]]()
        name = declared if isinstance(declared, str) else declared["type"]
        is_uuid = isinstance(declared, dict) and declared.get("logicalType") == "uuid"
        values = {"null": None, "boolean": True, "float": 1.5, "double": 2.5, "bytes": "\x01", "string": "é"}
        return "00000000-0000-0000-0000-000000000001" if is_uuid else values.get(name, 7)

    # Changes

    def changed(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Make a copy with up to three changes."""
        made = copy.deepcopy(schema)
        for _ in range(self.rng.choice([0, 1, 1, 1, 1, 2, 2, 3])):
            places = list(_places(made))
            holder, key = self.rng.choice(places)
            changes = [self._retype] * 2
            declared = holder[key]
            if isinstance(declared, list):
                changes = [self._branches]
            elif isinstance(declared, dict):
                named = [self._rename] if "name" in declared else []
                own = {"record": [self._fields] * 5, "enum": [self._symbols] * 3, "fixed": [self._size]}
                units = [self._unit] * 3 if "logicalType" in declared else []
                changes = changes + named + own.get(declared["type"], []) + units
            self.rng.choice(changes)(holder, key)
        return made

    def _retype(self, holder: Any, key: Any) -> None:
        declared = holder[key]
        name = declared if isinstance(declared, str) else declared.get("type")
        is_branch = isinstance(holder, list)
        change = self.rng.random()
        if change < 0.5 and name in PROMOTED:
            holder[key] = self.rng.choice(PROMOTED[name])
        elif change < 0.75 and not is_branch:
            holder[key] = ["null", declared] if self.rng.random() < 0.5 else [declared, "null"]
        elif change < 0.85 and isinstance(declared, str):
            units = [one for one in LOGICAL if one["type"] == declared]
            holder[key] = self.rng.choice(units or [declared])
        elif isinstance(holder, dict) and "fields" not in declared:
            holder[key] = self.type(0)
        if isinstance(holder, dict) and "default" in holder:
            holder["default"] = self.default(holder[key])

    def _branches(self, holder: Any, key: Any) -> None:
        union = holder[key]
        if len(union) == 1:
            return
        change = self.rng.randrange(4)
        if change == 0:
            self.rng.shuffle(union)
        elif change == 1:
            union.pop(self.rng.randrange(len(union)))
        elif change == 2:
            one = self.type(0, plain=True)
            union.insert(self.rng.randint(0, len(union)), one)
        else:
            holder[key] = self.rng.choice(union)
        if isinstance(holder, dict) and "default" in holder and holder[key]:
            holder["default"] = self.default(holder[key])

    def _rename(self, holder: Any, key: Any) -> None:
        declared = holder[key]
        old = declared["name"]
        change = self.rng.random()
        declared["name"] = "m." + old.partition(".")[2] if change < 0.3 else "n." + self.name("N")
        if change > 0.5:
            declared["aliases"] = [old]

    def _symbols(self, holder: Any, key: Any) -> None:
        declared = holder[key]
        symbols = list(declared["symbols"])
        change = self.rng.randrange(4)
        if change == 0 and len(symbols) > 1:
            symbols.remove(self.rng.choice(symbols))
            if self.rng.random() < 0.3:
                declared["default"] = symbols[0]
        elif change == 1:
            self.rng.shuffle(symbols)
        else:
            symbols.insert(0, "Z")
        declared["symbols"] = symbols

    def _size(self, holder: Any, key: Any) -> None:
        holder[key]["size"] += 1

    def _unit(self, holder: Any, place: Any) -> None:
        declared = holder[place]
        if "precision" in declared and self.rng.random() < 0.7:
            key = self.rng.choice(["precision", "scale"])
            bound = declared["precision"] if key == "scale" else 4 if declared["type"] == "fixed" else 9
            declared[key] = min(max(declared[key] + self.rng.choice([-1, 1]), int(key == "precision")), bound)
            declared["scale"] = min(declared["scale"], declared["precision"])
        elif isinstance(declared["type"], str) and declared["type"] != "fixed":
            same = [one for one in LOGICAL if one["type"] == declared["type"]]
            holder[place] = copy.deepcopy(self.rng.choice([*same, declared["type"]]))

    def _fields(self, holder: Any, key: Any) -> None:
        fields = holder[key]["fields"]
        if not fields:
            return
        at = self.rng.randrange(len(fields))
        one = fields[at]
        change = self.rng.randrange(8)
        if change <= 1:
            fields.insert(at, self.field(1))
        elif change == 2:
            added = {"name": self.name("f"), "type": self.type(1)}
            fields.insert(at, {**added, "default": self.default(added["type"])})
        elif change == 3:
            fields.pop(at)
        elif change == 4:
            self.rng.shuffle(fields)
        elif change == 5:
            one["name"] = self.name("f")
        elif change == 6:
            one["aliases"], one["name"] = [one["name"]], self.name("f")
        else:
            # A field takes the name of another one, which is no longer there, as its alias.
            other = fields.pop(self.rng.randrange(len(fields)))
            if fields:
                fields[0]["aliases"] = [*fields[0].get("aliases", []), other["name"]]


def _kind(declared: Any) -> Any:
    return declared if isinstance(declared, str) else declared.get("name", declared["type"])


def _places(holder: Any):
    """Find the places of types in a schema: what holds each, and the key."""
    top = {"type": holder}
    left: list[tuple[Any, Any]] = [(top, "type")]
    while left:
        one, key = left.pop()
        if one is not top:
            yield one, key
        elif isinstance(holder, dict):
            yield top, key
        declared = one[key]
        if isinstance(declared, list):
            left += [(declared, i) for i in range(len(declared))]
        elif isinstance(declared, dict):
            left += [(declared, inner) for inner in ("items", "values") if inner in declared]
            left += [(field, "type") for field in declared.get("fields", [])]


def fastavro_reads(writer: str, reader: str, payload: bytes) -> Any:
    """Read a payload with fastavro. Raises `UnreadableError` whatever fastavro raises."""
    try:
        return fastavro.schemaless_reader(io.BytesIO(payload), json.loads(writer), json.loads(reader))
    except Exception as error:
        raise UnreadableError from error


class UnreadableError(Exception):
    """An engine raised something."""


@dataclass(frozen=True)
class Pair:
    """A pair of schemas with its verdict, and data of the writer's with their payloads."""

    writer: str
    reader: str
    verdict: Verdict
    step: Step | None
    data: list[tuple[Any, bytes]]

    @property
    def reasons(self) -> list[str]:
        """Why the reader's schema does not read all data of the writer's."""
        return [one.reason for one in self.verdict.problems if one.direction == "backward"]

    @property
    def notes(self) -> list[str]:
        """What is noted of the reader's schema reading data of the writer's."""
        return [one.reason for one in self.verdict.notes if one.direction == "backward"]


def pair(writer: str, reader: str, seed: int = 0) -> Pair:
    """Make the pair of two schemas. Raises `SchemaError` if one is none."""
    was, now = parse_schema(writer), parse_schema(reader)
    said = verdict(now, was)
    step = resolve(was.root, now.root) if said.backward else None
    data = [(one, write(was.root, one)) for one in cover(was.root, random.Random(seed))]
    return Pair(writer, reader, said, step, data)


@st.composite
def pairs(draw) -> Pair:
    """Draw a pair: the reader's schema is the writer's with up to three changes."""
    seed = draw(st.integers(0, 2**32))
    maker = Maker(random.Random(seed))
    writer = maker.schema()
    try:
        return pair(json.dumps(writer), json.dumps(maker.changed(writer)), seed)
    except SchemaError:
        reject()


# Where the verdict says no and fastavro says nothing, or the other way round: the reason or note, and which it is.
FASTAVRO = {
    "reads by the last part of a name": re.compile(
        r"(no branch of \[.*\bm\..*\]|\[?m\.[EFR]\d+\]?) (cannot read|reads) "
    ),
    "knows the writer's logical type only": re.compile(
        r"(scale|precision|logicalType) |.* reads plain |string reads decimal"
    ),
    "takes the new name of a field that has its old one too": re.compile(r".* would both be read as "),
    "reads the default [] of a union": re.compile(r".* fails on the default \[\] of a union"),
    "takes the default of an enum": re.compile(r"\S+ lacks "),
}


def fastavro_known(one: Pair) -> str | None:
    """Check a pair with fastavro. Gives the known difference that it shows, None for none."""
    known = None
    failed = 0
    for value, payload in one.data:
        try:
            got = fastavro_reads(one.writer, one.reader, payload)
        except UnreadableError:
            failed += 1
            got = UnreadableError
        if one.step is None or is_same(expected(one.step, value), got):
            continue
        known = fastavro_difference(one, value, got)
    if one.step is None and not failed:
        found = [name for name, reason in FASTAVRO.items() if any(map(reason.match, one.reasons))]
        assert found, one
        known = found[0]
    return known


def fastavro_difference(one: Pair, value: Any, got: Any) -> str:
    """Name the known way in which fastavro gives something else than expected."""
    if is_same(expected(one.step, value, by_writer=True), got):
        return "gives the writer's logical type"
    if is_same(expected(one.step, value, by_writer=True, raw=True), got):
        return "gives a default as the schema's JSON has it"
    if got is UnreadableError and not fastavro_parses(one):
        return "refuses a decimal that is invalid"
    assert any("which stands before it" in note for note in one.notes), (one, value, got)
    return "takes the first branch that promotes"


def fastavro_parses(one: Pair) -> bool:
    """Return whether fastavro takes the schemas for such."""
    try:
        fastavro.parse_schema(json.loads(one.writer))
        fastavro.parse_schema(json.loads(one.reader))
    except fastavro.schema.SchemaParseException:
        return False
    return True
