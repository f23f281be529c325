"""Pipelines that the local runner runs, from a file of their configuration, and what their lake tables hold."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from cdcavro.sync.batches import BatchReport
from cdcavro.sync.config import read_config
from cdcavro.sync.local.local_runner import Pipeline
from cdcavro.sync.local.local_sinks import native_lake
from cdcavro.sync.native.native_columns import NativeLake, NativeTable
from cdcavro.sync.native.native_tables import locate
from cdcavro.sync.outputs.sink_settings import LakeSettings
from cdcavro.table.table_names import parse_table_name
from support.messages import put_messages

DELTA, ICEBERG = "delta", "iceberg"


def toml_of(parts: Mapping[str, Any]) -> str:
    """Return a configuration in TOML: values first, then sections, of which a list has several of one name."""
    headed = {f"[{name}]": [part] for name, part in parts.items() if isinstance(part, Mapping)}
    for name, part in parts.items():
        if isinstance(part, list) and part and all(isinstance(one, Mapping) for one in part):
            headed[f"[[{name}]]"] = part
    values = [
        f"{name} = {json.dumps(value)}"
        for name, value in parts.items()
        if f"[{name}]" not in headed and f"[[{name}]]" not in headed
    ]
    sections = [
        "\n".join([header, *[f"{key} = {_toml_value(value)}" for key, value in part.items()]])
        for header, listed in headed.items()
        for part in listed
    ]
    return "\n".join([*values, *sections]) + "\n"


def _toml_value(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{json.dumps(key)} = {_toml_value(one)}' for key, one in value.items())} }}"
    return json.dumps(value)


def lake_section(kind: str, folder: Path, warehouse: str | None = None, **more: Any) -> dict[str, Any]:
    """Return the section of a lake: Delta Lake in a folder, or Iceberg in a warehouse, by default in that folder."""
    if kind == DELTA:
        return {"delta": str(folder / "lake"), **more}
    return {"iceberg": "ice", "warehouse": warehouse or str(folder / "wh"), **more}


@dataclass
class LocalJob:
    """A pipeline over a folder of files, or another source, which this process runs.

    * `folder` (Path): all that is its own.
    * `lake` (dict): the section of its lake; other sections and values are in `more`.
    """

    folder: Path
    lake: dict[str, Any]
    more: dict[str, Any] = field(default_factory=dict)
    files: int = 0

    def send(self, *messages: bytes) -> None:
        """Put messages into a new file."""
        self.folder.mkdir(parents=True, exist_ok=True)
        put_messages(self.folder / "in", self.files, messages)
        self.files += 1

    def config(self, **more: Any) -> Path:
        """Write the configuration, and return its file."""
        parts = {
            "run": "local",
            "format": "canal",
            "state": str(self.folder / "state"),
            "source": {"files": str(self.folder / "in"), "most": 1},
            "tables": {"zone": "UTC"},
            **({"lake": self.lake} if self.lake else {}),
            **self.more,
            **more,
        }
        path = self.folder / "sync.toml"
        path.write_text(toml_of(parts), encoding="utf-8")
        return path

    def pipeline(self, **more: Any) -> Pipeline:
        """Return the pipeline, with other settings if they are given."""
        path = self.config(**more)
        return read_config(path).pipeline(str(path), Pipeline)

    def run(self, **more: Any) -> list[BatchReport]:
        """Run until nothing is left, and return the reports of the batches."""
        reports: list[BatchReport] = []
        self.pipeline(**more).run(once=True, say=reports.append)
        return reports

    @property
    def native(self) -> NativeLake:
        """The lake."""
        sink = self.pipeline().sink
        assert isinstance(sink, LakeSettings)
        return native_lake(sink)

    def table(self, name: str, suffix: str = "") -> NativeTable:
        """Return a lake table."""
        parsed = parse_table_name(name)
        return locate(self.native, parsed).table(parsed, suffix)

    def rows(self, table: str, *columns: str, suffix: str = "") -> list[tuple[Any, ...]]:
        """Return rows of a lake table, sorted; none if it is not there."""
        own = self.table(table, suffix)
        if own.properties() is None:
            return []
        return sorted(tuples(own.read(list(columns))), key=repr)


def tuples(rows: pa.Table) -> Iterable[tuple[Any, ...]]:
    """Return the rows of a table of Arrow's."""
    return zip(*[column.to_pylist() for column in rows.columns], strict=True)
