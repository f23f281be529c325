"""Pairs of schemas that differ in a few places, and how fastavro reads the older one's data."""

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
    from cdcavro.avro.types import Type

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
    """Generates a random schema, and then a copy of it that differs in a few places."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.count = 0

    def name(self, kind: str) -> str:
        """Return a name that has not been used yet."""
        self.count += 1
        return f"{kind}{self.count}"

    def schema(self) -> dict[str, Any]:
        """Return a record of one to four fields."""
        return self.record(3)

    def record(self, depth: int) -> dict[str, Any]:
        """Return a record whose types are nested up to a depth."""
        fields = [self.field(depth - 1) for _ in range(self.rng.randint(1, 4))]
        return {"type": "record", "name": "n." + self.name("R"), "fields": fields}

    def field(self, depth: int) -> dict[str, Any]:
        """Return a field, sometimes with a default."""
        field = {"name": self.name("f"), "type": self.type(depth)}
        if self.rng.random() < 0.3:
            field["default"] = self.default(field["type"])
        return field

    def type(self, depth: int, *, plain: bool = False) -> Any:
        """Return a type; with `plain`, never a union."""
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
                fixed = {"type": "fixed", "name": "n." + self.name("F"), "size": self.rng.choice([2, 12])}
                units = [{}, {"logicalType": "decimal", "precision": 3, "scale": 1}]
                return {**fixed, **self.rng.choice(units)}
            case "array":
                return {"type": "array", "items": self.type(depth - 1)}
            case "map":
                return {"type": "map", "values": self.type(depth - 1)}
            case "record":
                return self.record(depth)
            case _:
                return self.union(depth)

    def union(self, depth: int) -> list[Any]:
        """Return a union, usually with null."""
        branches: list[Any] = ["null"] if self.rng.random() < 0.7 else []
        for _ in range(self.rng.randint(1, 3)):
            branch = self.type(depth - 1, plain=True)
            if _kind(branch) not in map(_kind, branches):
                branches.insert(self.rng.randint(0, len(branches)), branch)
        return branches

    def default(self, declared: Any) -> Any:
        """Return a default for a type, in the form of a schema's JSON."""
        if isinstance(declared, list):
            return self.default(declared[0])
        if isinstance(declared, dict) and declared["type"] in ("record", "enum", "fixed", "array", "map"):
            defaults = {
                "record": lambda: {field["name"]: self.default(field["type"]) for field in declared["fields"]},
                "enum": lambda: declared["symbols"][0],
                "fixed": lambda: "\x00" * declared["size"],
                "array": list,
                "map": dict,
            }
            return defaults[declared["type"]]()
        name = declared if isinstance(declared, str) else declared["type"]
        is_uuid = isinstance(declared, dict) and declared.get("logicalType") == "uuid"
        values = {"null": None, "boolean": True, "float": 1.5, "double": 2.5, "bytes": "\x01", "string": "é"}
        return "00000000-0000-0000-0000-000000000001" if is_uuid else values.get(name, 7)

    # Changes

    def changed(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return a copy with up to three changes."""
        changed = copy.deepcopy(schema)
        for _ in range(self.rng.choice([0, 1, 1, 1, 1, 2, 2, 3])):
            places = list(_places(changed))
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
        return changed

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
            units = [logical for logical in LOGICAL if logical["type"] == declared]
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
            branch = self.type(0, plain=True)
            union.insert(self.rng.randint(0, len(union)), branch)
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
            same = [logical for logical in LOGICAL if logical["type"] == declared["type"]]
            holder[place] = copy.deepcopy(self.rng.choice([*same, declared["type"]]))

    def _fields(self, holder: Any, key: Any) -> None:
        fields = holder[key]["fields"]
        if not fields:
            return
        at = self.rng.randrange(len(fields))
        field = fields[at]
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
            field["name"] = self.name("f")
        elif change == 6:
            field["aliases"], field["name"] = [field["name"]], self.name("f")
        else:
            # The name of a removed field becomes an alias of another.
            removed = fields.pop(self.rng.randrange(len(fields)))
            if fields:
                fields[0]["aliases"] = [*fields[0].get("aliases", []), removed["name"]]


def _kind(declared: Any) -> Any:
    return declared if isinstance(declared, str) else declared.get("name", declared["type"])


def _places(holder: Any):
    """Yield the places of types in a schema, each as its container and key."""
    top = {"type": holder}
    places: list[tuple[Any, Any]] = [(top, "type")]
    while places:
        container, key = places.pop()
        if container is not top:
            yield container, key
        elif isinstance(holder, dict):
            yield top, key
        declared = container[key]
        if isinstance(declared, list):
            places += [(declared, i) for i in range(len(declared))]
        elif isinstance(declared, dict):
            places += [(declared, inner) for inner in ("items", "values") if inner in declared]
            places += [(field, "type") for field in declared.get("fields", [])]


def fastavro_reads(writer: str, reader: str, payload: bytes) -> Any:
    """Return a payload as fastavro reads it. Raises `UnreadableError` whatever fastavro raises."""
    try:
        return fastavro.schemaless_reader(io.BytesIO(payload), json.loads(writer), json.loads(reader))
    except Exception as error:
        raise UnreadableError from error


class UnreadableError(Exception):
    """A reader raised an error."""


@dataclass(frozen=True)
class Pair:
    """A pair of schemas with its verdict, and data of the writer's schema with their payloads."""

    writer: str
    reader: str
    verdict: Verdict
    step: Step | None
    data: list[tuple[Any, bytes]]
    roots: tuple[Type, Type]

    @property
    def reasons(self) -> list[str]:
        """The reasons why the reader's schema does not read all of the writer's data."""
        return [problem.reason for problem in self.verdict.problems if problem.direction == "backward"]

    @property
    def notes(self) -> list[str]:
        """The notes on how the reader's schema reads the writer's data."""
        return [note.reason for note in self.verdict.notes if note.direction == "backward"]


def pair(writer: str, reader: str, seed: int = 0) -> Pair:
    """Return the pair of two schemas. Raises `SchemaError` if either is invalid."""
    was, now = parse_schema(writer), parse_schema(reader)
    result = verdict(now, was)
    step = resolve(was.root, now.root) if result.backward else None
    data = [(datum, write(was.root, datum)) for datum in cover(was.root, random.Random(seed))]
    return Pair(writer, reader, result, step, data, (was.root, now.root))


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


# Known differences between the verdict and fastavro, with a pattern for the reason or note that shows each.
FASTAVRO = {
    "reads by the last part of a name": re.compile(
        r"(no branch of \[.*\bm\..*\]|\[?m\.[EFR]\d+\]?) (cannot read|reads) "
    ),
    "knows the writer's logical type only": re.compile(
        r"(scale|precision|logicalType) |.* reads plain |string reads decimal"
    ),
    "takes the new name of a field that has its old one too": re.compile(r".* would both be read as "),
    "reads the default [] of a union": re.compile(r".* fails on the default \[\] of a union"),
    "takes the first branch that promotes": re.compile(r"fastavro reads "),
}


def fastavro_known(checked: Pair) -> str | None:
    """Check a pair with fastavro, and return the known difference that it shows, or None."""
    known = None
    failed = 0
    for value, payload in checked.data:
        try:
            got = fastavro_reads(checked.writer, checked.reader, payload)
        except UnreadableError:
            failed += 1
            got = UnreadableError
        if checked.step is None or is_same(expected(checked.step, value), got):
            continue
        known = fastavro_difference(checked, value, got)
    if checked.step is None and not failed:
        names = [name for name, reason in FASTAVRO.items() if any(map(reason.match, checked.reasons))]
        assert names, checked
        known = names[0]
    return known


def fastavro_difference(checked: Pair, value: Any, got: Any) -> str:
    """Return the name of the known difference between what fastavro returns and what is expected."""
    if is_same(expected(checked.step, value, by_writer=True), got):
        return "gives the writer's logical type"
    if is_same(expected(checked.step, value, by_writer=True, raw=True), got):
        return "gives a default as the schema's JSON has it"
    if got is UnreadableError and not fastavro_parses(checked):
        return "refuses a decimal that is invalid"
    raise AssertionError(checked, value, got)


def fastavro_parses(checked: Pair) -> bool:
    """Return whether fastavro accepts both schemas."""
    try:
        fastavro.parse_schema(json.loads(checked.writer))
        fastavro.parse_schema(json.loads(checked.reader))
    except fastavro.schema.SchemaParseException:
        return False
    return True
