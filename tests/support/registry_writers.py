"""Programs that publish to the same folder at once, and a check that the folder's content is consistent."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from contextlib import AbstractContextManager
from pathlib import Path

import cdcavro
from cdcavro import registry
from cdcavro.registry.folder_backend import FOLDERS, MARK, FolderBackend
from support.processes import running
from support.wire import field, record

ROOT = str(Path(cdcavro.__file__).parents[1])
# Publishes each schema under two subjects: the program's own and a shared one.
WRITER = """
import json, os, sys
folder, who, count, synced = sys.argv[1:]
if synced == "no":
    os.fsync = lambda _: None
from cdcavro import registry
schemas = registry.connect("file:" + folder)
print("ready", flush=True)
for i in range(int(count)):
    # Every second schema is published by the other program too.
    doc = f"both {i}" if i % 2 else f"{who} {i}"
    schema = json.dumps({"type": "record", "name": "R", "doc": doc, "fields": []})
    shared = schemas.publish(schema, "shared", compatibility="NONE")
    own = schemas.publish(schema, who)
    assert own.id == shared.id
    print(shared.id, shared.version, flush=True)
"""


def publishing(folder: Path, who: str, count: int, *, synced: str = "no") -> AbstractContextManager[subprocess.Popen]:
    """Run a program that publishes a number of schemas."""
    command = [sys.executable, "-c", WRITER, str(folder), who, str(count), synced]
    environment = os.environ | {"PYTHONPATH": ROOT}
    return running(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def check_folder(folder) -> dict[int, str]:
    """Check that a folder's content is consistent, and return the ids of the shared subject by version."""
    schemas = registry.connect(f"file:{folder}")
    seen: dict[str, int] = {}
    for subject in schemas.subjects():
        for version in schemas.versions(subject):
            registered = schemas.fetch(subject=subject, version=version)
            assert seen.setdefault(registered.schema.json, registered.id) == registered.id
            assert schemas.fetch(id=registered.id, subject=subject).version == version
            assert schemas.fetch(guid=registered.guid).id == registered.id
            assert registered.id in FolderBackend(Path(folder))._ids_with(registered.schema.fingerprint)
    assert len(set(seen.values())) == len(seen)
    return {version: schemas.fetch(subject="shared", version=version).id for version in schemas.versions("shared")}


def publish_at_once(folder: Path, count: int, *, synced: str = "no") -> None:
    """Let two programs publish a number of schemas each, half of them the same, and check that nothing is lost."""
    with (
        publishing(folder, "one", count, synced=synced) as first,
        publishing(folder, "two", count, synced=synced) as second,
    ):
        outputs = [first.communicate(), second.communicate()]
    assert (first.returncode, second.returncode) == (0, 0), outputs
    versions = check_folder(folder)
    distinct = 2 * count - count // 2
    assert sorted(versions) == list(range(1, distinct + 1))
    assert sorted(versions.values()) == list(range(1, distinct + 1))
    published = [tuple(map(int, line.split())) for out, _ in outputs for line in out.splitlines()[1:]]
    assert len(published) == 2 * count
    assert all(versions[version] == id for id, version in published)


def kill_at_random(folder: Path, seed: int, times: int) -> None:
    """Kill publishing programs repeatedly, and check that what each reported is there and the next can go on."""
    rng = random.Random(seed)
    reported: dict[int, int] = {}
    for turn in range(times):
        with publishing(folder, f"w{turn}", 10_000) as program:
            assert program.stdout.readline() == "ready\n"
            time.sleep(rng.uniform(0.005, 0.1))
            program.kill()
            lines, _ = program.communicate()
        reported |= {
            int(version): int(id) for id, _, version in (line.partition(" ") for line in lines.splitlines()) if version
        }
        if (folder / "registry.json").exists():
            assert reported.items() <= check_folder(folder).items()
    published = registry.connect(f"file:{folder}").publish('"int"', "shared")
    assert check_folder(folder)[published.version] == published.id


def many(folder: Path, count: int) -> None:
    """Write the folder of a registry in which a subject has many versions, as if they had been published."""
    for name in (*FOLDERS, "subjects/s"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "registry.json").write_text(json.dumps(MARK))
    for number in range(1, count + 1):
        schema = json.dumps(record(field("x"), name=f"R{number}"))
        raw = {"id": number, "guid": None, "fingerprint": "", "schema": schema, "references": []}
        (folder / "schemas" / f"{number}.json").write_text(json.dumps(raw))
        version = {"subject": "s", "version": number, "id": number}
        (folder / "subjects" / "s" / f"{number}.json").write_text(json.dumps(version))
