"""The steps by which a reader's schema reads what a writer's schema wrote: a tree that is independent of bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cdcavro.avro.findings import Finding
    from cdcavro.avro.types import Enum, Field, Primitive, Record


@dataclass(frozen=True, slots=True)
class ReadPrimitive:
    """Read a value of the type `writer` and return it as the type `reader`."""

    writer: Primitive
    reader: Primitive


@dataclass(frozen=True, slots=True)
class ReadFixed:
    """Read `size` bytes."""

    size: int


@dataclass(frozen=True, slots=True)
class ReadEnum:
    """Read an index into the writer's `symbols`, as the reader reads them: None where it lacks one and has no default."""

    reader: Enum
    symbols: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class ReadArray:
    """Read the items of an array."""

    items: Step


@dataclass(frozen=True, slots=True)
class ReadMap:
    """Read the values of a map."""

    values: Step


@dataclass(frozen=True, slots=True)
class ReadUnion:
    """Read the index of a writer's branch, then the branch; a text says why the reader cannot read that branch."""

    branches: tuple[Step | str, ...]


@dataclass(frozen=True, slots=True)
class ReadRecord:
    """Read the writer's fields in order, each into a field of the reader or nowhere; then fill in the defaults.

    For a record that contains itself, one of the steps leads back to this one.
    """

    reader: Record
    fields: tuple[tuple[Step, Field, Field | None], ...]
    defaults: tuple[Field, ...]


Step = ReadPrimitive | ReadFixed | ReadEnum | ReadArray | ReadMap | ReadUnion | ReadRecord


@dataclass(slots=True)
class Paired:
    """Two records that are or were compared at a place: the step, or the reason of the error, and the findings.

    The findings are None until the comparison has ended.
    """

    where: str
    step: ReadRecord
    error: tuple[str, str] | None = None
    findings: list[Finding] | None = None
