"""Pairs of schemas as people write them: with aliases, defaults of every type, and records that contain themselves."""

from __future__ import annotations

import copy
import random
from typing import Any

from support.schema_pairs import LOGICAL, PLAIN, PROMOTED, Maker

MORE = [
    *LOGICAL,
    {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 0},
    {"type": "long", "logicalType": "local-timestamp-millis"},
]
TEXTS = ["", "a", "é", "x\ny", "日本"]
CHANGES = [0, 1, 1, 1, 2, 2, 3, 4]


class WideMaker(Maker):
    """As `Maker`, with more of what Avro has."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self.open: list[str] = []

    def record(self, depth: int) -> dict[str, Any]:
        """Return a record, sometimes with aliases, and with fields that lead back to a record around it."""
        name = "n." + self.name("R")
        self.open.append(name)
        fields = [self.field(depth - 1) for _ in range(self.rng.randint(0 if depth < 3 else 1, 4))]
        if self.rng.random() < 0.08:
            fields.append(self.back(self.rng.choice(self.open)))
        self.open.pop()
        made = {"type": "record", "name": name, "fields": fields}
        return made | ({"aliases": [f"n.{self.name('Old')}"]} if self.rng.random() < 0.1 else {})

    def back(self, name: str) -> dict[str, Any]:
        """Return a field of a record that is being made, in one of the ways in which its data may end."""
        kinds = [["null", name], [name, "null"], {"type": "array", "items": name}, {"type": "map", "values": name}]
        made = self.rng.choice(kinds)
        ends = {"null": None, "array": [], "map": {}}
        end = made.get("type") if isinstance(made, dict) else made[0]
        default = {"default": ends[end]} if end in ends and self.rng.random() < 0.5 else {}
        return {"name": self.name("f"), "type": made, **default}

    def field(self, depth: int) -> dict[str, Any]:
        """Return a field, half of the time with a default, sometimes with an alias."""
        field = {"name": self.name("f"), "type": self.type(depth)}
        if self.rng.random() < 0.5:
            field["default"] = self.default(field["type"])
        if self.rng.random() < 0.1:
            field["aliases"] = [self.name("old")]
        return field

    def type(self, depth: int, *, plain: bool = False) -> Any:
        """Return a type; with `plain`, never a union."""
        made = super().type(depth, plain=plain)
        if isinstance(made, dict) and made["type"] == "enum" and self.rng.random() < 0.2:
            made["default"] = self.rng.choice(made["symbols"])
        if isinstance(made, dict) and "logicalType" in made and made["type"] != "fixed" and self.rng.random() < 0.3:
            return copy.deepcopy(self.rng.choice(MORE))
        return made

    def union(self, depth: int) -> list[Any]:
        """Return a union, sometimes with two types of one name in two namespaces, or of one shape."""
        branches = super().union(depth)
        named = [branch for branch in branches if isinstance(branch, dict) and branch["type"] in ("enum", "fixed")]
        if named and self.rng.random() < 0.3:
            other = copy.deepcopy(self.rng.choice(named))
            other["name"] = "m." + other["name"].partition(".")[2] if self.rng.random() < 0.5 else "n." + self.name("X")
            if other["type"] == "enum" and self.rng.random() < 0.5:
                other["symbols"] = ["Y", *other["symbols"]]
            branches.insert(self.rng.randint(0, len(branches)), other)
        return branches

    def default(self, declared: Any) -> Any:
        """Return a random default for a type; that of a union is mostly of the first branch."""
        if isinstance(declared, list):
            later = self.rng.random() < 0.15
            return self.default(self.rng.choice(declared) if later else declared[0])
        kind = declared if isinstance(declared, str) else declared["type"]
        if "." in kind:
            return None
        match kind:
            case "record":
                given = [f for f in declared["fields"] if "default" not in f or self.rng.random() < 0.6]
                return {field["name"]: self.default(field["type"]) for field in given}
            case "enum":
                return self.rng.choice(declared["symbols"])
            case "array":
                return [self.default(declared["items"]) for _ in range(self.rng.randint(0, 2))]
            case "map":
                return {f"k{i}": self.default(declared["values"]) for i in range(self.rng.randint(0, 2))}
            case "fixed":
                return "\x00" * (declared["size"] - 1) + chr(self.rng.randrange(100))
        return self.scalar(kind, declared if isinstance(declared, dict) else {})

    def scalar(self, kind: str, declared: dict[str, Any]) -> Any:
        """Return a default of a primitive."""
        if declared.get("logicalType") == "uuid":
            return "00000000-0000-0000-0000-00000000000a"
        if declared.get("logicalType") == "decimal":
            return chr(self.rng.randrange(100))
        if "logicalType" in declared and declared["logicalType"] != "of-another-world":
            return self.rng.randrange(30_000)
        values: dict[str, list[Any]] = {
            "null": [None],
            "boolean": [True, False],
            "int": [0, -1, 2**31 - 1, 16_777_217],
            "long": [0, -1, 2**63 - 1, 2**53 + 1],
            "float": [0, 1.5, -2, "NaN"],
            "double": [0, 2.5, 1e300, "Infinity"],
            "bytes": ["", "\x01", "ÿ\x00", "ab"],
            "string": TEXTS,
        }
        return self.rng.choice(values[kind])

    # Changes

    def changed(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return a copy with some changes, most of them of fields, unions and numbers."""
        changed = super().changed(schema)
        for _ in range(self.rng.choice(CHANGES)):
            self.rng.choice([self._rename_field, self._promote, self._nullable, self._add, self._drop, self._order])(
                changed
            )
        return changed

    def _records(self, schema: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        pending = [schema]
        while pending:
            declared = pending.pop()
            if isinstance(declared, list):
                pending += declared
            elif isinstance(declared, dict):
                pending += [declared[inner] for inner in ("items", "values") if inner in declared]
                pending += [field["type"] for field in declared.get("fields", [])]
                found += [declared] if "fields" in declared else []
        return found

    def _fields_of(self, schema: Any) -> list[dict[str, Any]]:
        return [field for record in self._records(schema) for field in record["fields"]]

    def _some(self, schema: Any) -> dict[str, Any] | None:
        fields = self._fields_of(schema)
        return self.rng.choice(fields) if fields else None

    def _rename_field(self, schema: Any) -> None:
        field = self._some(schema)
        if field is not None:
            field["aliases"], field["name"] = [*field.get("aliases", []), field["name"]], self.name("f")

    def _promote(self, schema: Any) -> None:
        field = self._some(schema)
        if field is None:
            return
        declared = field["type"]
        if isinstance(declared, str) and declared in PROMOTED:
            field["type"] = self.rng.choice(PROMOTED[declared])
        elif isinstance(declared, list):
            at = self.rng.randrange(len(declared)) if declared else None
            if at is not None and isinstance(declared[at], str) and declared[at] in PROMOTED:
                into = self.rng.choice(PROMOTED[declared[at]])
                if into not in declared:
                    declared[at] = into
        self._redefault(field)

    def _nullable(self, schema: Any) -> None:
        field = self._some(schema)
        if field is None:
            return
        declared = field["type"]
        if not isinstance(declared, list):
            field["type"] = self.rng.choice([["null", declared], [declared, "null"]])
        else:
            kinds = {branch if isinstance(branch, str) else branch["type"] for branch in declared}
            more = [kind for kind in [*PLAIN, "null"] if kind not in kinds]
            if more:
                declared.insert(self.rng.randint(0, len(declared)), self.rng.choice(more))
        self._redefault(field)

    def _redefault(self, field: dict[str, Any]) -> None:
        if "default" in field:
            field["default"] = self._safe_default(field["type"])

    def _safe_default(self, declared: Any) -> Any:
        first = declared[0] if isinstance(declared, list) and declared else declared
        if isinstance(first, str) and "." in first:
            return None
        return self.default(declared) if not _names_used(declared) else None

    def _add(self, schema: Any) -> None:
        record = self.rng.choice(self._records(schema))
        added = {"name": self.name("f"), "type": self.type(2)}
        if self.rng.random() < 0.9:
            added["default"] = self.default(added["type"])
        record["fields"].insert(self.rng.randint(0, len(record["fields"])), added)

    def _drop(self, schema: Any) -> None:
        record = self.rng.choice(self._records(schema))
        if record["fields"]:
            record["fields"].pop(self.rng.randrange(len(record["fields"])))

    def _order(self, schema: Any) -> None:
        for declared in self._records(schema):
            self.rng.shuffle(declared["fields"])


def _names_used(declared: Any) -> bool:
    """Return whether a type refers to others by name, whose defaults are not known here."""
    if isinstance(declared, str):
        return "." in declared
    if isinstance(declared, list):
        return any(map(_names_used, declared))
    inner = [declared[key] for key in ("items", "values") if key in declared]
    return any(map(_names_used, inner + [field["type"] for field in declared.get("fields", [])]))
