"""The folder of a registry: crashes, several writers, damage, other people's folders, and what it costs."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import threading
from dataclasses import replace
from pathlib import Path

import pytest

import cdcavro
from cdcavro import registry
from cdcavro.registry.backend import Reference, StoredSchema, is_equal
from cdcavro.registry.client import Registry
from cdcavro.registry.folder_backend import FolderBackend
from support.registry_writers import kill_at_random, many, publish_at_once
from support.roundtrip import error_of
from support.wire import field, record


@pytest.mark.slow
def test_two_programs_publish_at_once_and_nothing_is_lost(tmp_path):
    """Each id and each version is given once; more of them in tests/services."""
    publish_at_once(tmp_path / "s", 20)


@pytest.mark.slow
def test_a_killed_program_leaves_a_folder_that_loads(tmp_path):
    """Killed anywhere: what was told is there, and the next one goes on."""
    kill_at_random(tmp_path / "s", seed=0, times=1)


def _crash_points(folder):
    """Return a registry that stops at its nth change of the disk, for n of 1, 2, 3, …, until it stops no more."""
    for point in range(1, 100):
        changes = iter(range(1, 1000))

        def stop_at(changes=changes, point=point):
            if next(changes) == point:
                raise KeyboardInterrupt

        backend = FolderBackend(folder)
        for name in ("write", "append", "make"):
            does = getattr(backend._folder, name)
            setattr(backend._folder, name, lambda *of, does=does, stop=stop_at: (does(*of), stop()))
        yield Registry(backend)


@pytest.mark.slow
def test_a_crash_after_any_change_of_the_disk_leaves_all_in_order(tmp_path, monkeypatch):
    """Each change is the last once; the schema that was on its way is then published as if nothing had been."""
    monkeypatch.setattr("cdcavro.registry.folder_backend.os.fsync", lambda _handle: None)
    crashes = 0
    for number, schemas in enumerate(_crash_points(tmp_path / "s")):
        schema = json.dumps(record(name=f"R{number}"))
        try:
            schemas.publish(schema, f"subject {number}")
        except KeyboardInterrupt:
            crashes += 1
        else:
            break
        after = registry.connect(f"file:{tmp_path / 's'}")
        if (tmp_path / "s" / "registry.json").exists():
            after.subjects()
        made = after.publish(schema, f"subject {number}")
        assert made.version == 1
        assert after.fetch(id=made.id, subject=f"subject {number}").version == 1
        check_folder_but_shared(after)
    assert crashes >= 10


def check_folder_but_shared(schemas):
    """Every subject has its one schema, by its fingerprint and GUID too."""
    for subject in schemas.subjects():
        found = schemas.fetch(subject=subject, version=1)
        assert schemas.fetch(guid=found.guid).schema == found.schema
        assert schemas.fetch(fingerprint=found.schema.fingerprint).id == found.id


def test_every_file_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    """The bytes first, then the name, then the folder that holds the name."""
    events = []
    fsync, replace = os.fsync, os.replace

    def at(folder: int, name: str) -> str:
        return str(Path(f"/proc/self/fd/{folder}").readlink() / name)

    def named_now(name: str, target: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        events.append(("name", at(src_dir_fd, name), at(dst_dir_fd, target)))
        replace(name, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

    monkeypatch.setattr(
        "cdcavro.registry.folder_backend.os.fsync",
        lambda handle: (events.append(("sync", str(Path(f"/proc/self/fd/{handle}").readlink()))), fsync(handle))[1],
    )
    monkeypatch.setattr("cdcavro.registry.folder_backend.os.replace", named_now)
    registry.connect(f"file:{tmp_path / 's'}").publish('"int"', "s")
    named = [i for i, one in enumerate(events) if one[0] == "name"]
    assert len(named) >= 5
    for i in named:
        _, part, target = events[i]
        assert events[i - 1] == ("sync", part)
        assert events[i + 1] == ("sync", str(Path(target).parent))
    assert events[named[-1]][2].endswith("subjects/s/1.json")


def test_a_folder_that_is_being_changed_is_waited_for_and_not_for_ever(tmp_path):
    """The lock goes with the program that has it."""
    holder = FolderBackend(tmp_path / "s")
    waiting = Registry(FolderBackend(tmp_path / "s", lock_seconds=0.05))
    with holder.exclusive():
        said = f"registry file:{tmp_path / 's'}: another has been publishing for 0.05 seconds"
        assert error_of(waiting.publish, '"int"', "s") == said
    assert waiting.publish('"int"', "s").version == 1


def test_readers_do_not_wait(tmp_path):
    """What is there can be read while another publishes."""
    schemas = registry.connect(f"file:{tmp_path / 's'}")
    made = schemas.publish('"int"', "s")
    with FolderBackend(tmp_path / "s").exclusive():
        assert registry.connect(f"file:{tmp_path / 's'}").fetch(id=made.id).version == 1


def test_a_folder_without_a_registry_is_an_error_to_readers(tmp_path):
    """A name mistyped in a CI job must not look like a registry without subjects."""
    schemas = registry.connect(f"file:{tmp_path / 'none'}")
    said = f"registry file:{tmp_path / 'none'}: there is no registry in this folder; the first publication makes one"
    asked = (
        schemas.subjects,
        lambda: schemas.versions("s"),
        lambda: schemas.fetch(id=1),
        lambda: schemas.check('"int"', "s"),
        lambda: schemas.publish('"int"', "s", dry_run=True),
    )
    for ask in asked:
        assert error_of(ask) == said
    assert not (tmp_path / "none").exists()


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    """Nothing is written into it."""
    (tmp_path / "photo.jpg").write_bytes(b"")
    said = f"registry file:{tmp_path}: expected a registry's folder or an empty one, got one with 'photo.jpg' in it"
    assert error_of(registry.connect(f"file:{tmp_path}").publish, '"int"', "s") == said
    assert [one.name for one in tmp_path.iterdir()] == ["photo.jpg"]


def test_another_layout_is_refused(tmp_path):
    """By readers and writers."""
    (tmp_path / "registry.json").write_text('{"cdcavro": "registry", "layout": 2}')
    said = f"registry file:{tmp_path}: its layout is not one that this version of cdcavro knows"
    schemas = registry.connect(f"file:{tmp_path}")
    assert error_of(schemas.subjects) == error_of(schemas.publish, '"int"', "s") == said


DAMAGES = {
    "subjects/s/1.json": [
        (b"", "subjects/s/1.json is damaged: it is no JSON object"),
        (b"[]", "subjects/s/1.json is damaged: it is no JSON object"),
        (b"[" * 100_000, "subjects/s/1.json is damaged: it is no JSON object"),
        (b'{"subject":"t","version":1,"id":1}', "subjects/s/1.json is damaged: it is another version's"),
        (b'{"subject":"s","version":1,"id":"1"}', "a file in it is damaged: its id is no integer from 1 to 2147483647"),
    ],
    "schemas/1.json": [
        (b'{"id":1,"schema":"\\"int\\""', "schemas/1.json is damaged: it is no JSON object"),
        (b'{"id":2,"schema":"\\"int\\""}', "schemas/1.json is damaged: it has another id"),
        (b'{"id":1,"schema":7}', "a file in it is damaged: its schema is no text"),
        (b'{"id":1,"schema":"\\"int\\"","guid":"x"}', "a file in it is damaged: its guid is none"),
        (
            b'{"id":1,"schema":"\\"int\\"","references":{}}',
            "a file in it is damaged: its references are no array of up to 1,000",
        ),
        (b'{"id":1,"schema":"\\"int\\"","references":[7]}', "a file in it is damaged: a reference is no object"),
        (
            b'{"id":1,"schema":"\\"imt\\""}',
            "subject 's': it holds what is no schema: schema $: 'imt' is not defined before it is used",
        ),
    ],
    "subjects/s/compatibility.json": [
        (
            b'{"compatibility":"X"}',
            "a file in it is damaged: a compatibility level is one of BACKWARD, BACKWARD_TRANSITIVE, FORWARD, FORWARD_TRANSITIVE, FULL, FULL_TRANSITIVE, NONE",
        ),
    ],
}


@pytest.mark.parametrize(
    ("file", "content", "said"), [(file, *one) for file, damages in DAMAGES.items() for one in damages]
)
def test_a_damaged_file_is_one_sentence(tmp_path, file, content, said):
    """Whatever stands in it; never a schema that nobody published."""
    registry.connect(f"file:{tmp_path}").publish('"int"', "s")
    (tmp_path / file).write_bytes(content)
    schemas = registry.connect(f"file:{tmp_path}")
    asks = schemas.compatibility if "compatibility" in file else lambda one: schemas.fetch(subject=one)
    assert error_of(asks, "s") == f"registry file:{tmp_path}: {said}"


def test_a_torn_line_of_uses_is_passed_over(tmp_path):
    """A crash may have cut it short; the next one begins a line of its own."""
    schemas = registry.connect(f"file:{tmp_path}")
    made = schemas.publish('"int"', "s")
    with (tmp_path / "uses" / f"{made.id}.jsonl").open("ab") as uses:
        uses.write(b'{"subject": "t", "ver')
    schemas.publish('"int"', "u")
    assert FolderBackend(tmp_path).uses(made.id, None) == [("s", 1), ("u", 1)]


def test_a_use_whose_version_is_anothers_is_passed_over(tmp_path):
    """A crash may have come before the version was written, and another schema then taken its number."""
    schemas = registry.connect(f"file:{tmp_path}")
    made = schemas.publish('"int"', "s")
    schemas.publish('"long"', "s")
    with (tmp_path / "uses" / f"{made.id}.jsonl").open("ab") as uses:
        uses.write(b'{"subject": "s", "version": 2}\n{"subject": "s", "version": 9}\n')
    assert FolderBackend(tmp_path).uses(made.id, "s") == [("s", 1)]
    assert schemas.publish('"int"', "s").version == 1


def test_what_was_being_written_is_cleared_away_by_the_next(tmp_path):
    """Nobody else can be writing it."""
    schemas = registry.connect(f"file:{tmp_path}")
    schemas.publish('"int"', "s")
    (tmp_path / "parts" / "left").write_bytes(b"{")
    schemas.publish('"long"', "s")
    assert list((tmp_path / "parts").iterdir()) == []


def test_an_index_that_leads_to_another_schema_is_damage(tmp_path):
    """What is found by its content has that content."""
    schemas = registry.connect(f"file:{tmp_path}")
    schemas.publish('"int"', "s")
    guid = schemas.fetch(id=1).guid
    schemas.publish('"long"', "s")
    (tmp_path / "guids" / f"{guid}.json").write_text('{"id": 2}')
    said = f"registry file:{tmp_path}: guids/{guid}.json is damaged: it is the id of another schema"
    assert error_of(schemas.publish, '"int"', "s") == said


def test_a_name_that_looks_like_that_of_a_long_one_is_its_own(tmp_path):
    """The folder of a long name has a name that no other subject can have."""
    schemas = registry.connect(f"file:{tmp_path}")
    long = "x" * 300
    for name in (long, f"~{hashlib.sha256(long.encode()).hexdigest()}"):
        assert schemas.publish('"int"', name).version == 1
    assert len(schemas.subjects()) == 2


def test_schemas_with_other_references_are_not_the_same():
    """The text alone does not say what a name stands for."""
    one = StoredSchema(1, '"a.K"', (Reference("a.K", "k", 1),))
    assert is_equal(one, replace(one, id=2, subject="s"))
    assert not is_equal(one, replace(one, references=(Reference("a.K", "k", 2),)))


def test_what_cannot_be_written_is_an_error_of_the_registry(tmp_path):
    """A file stands where the folder should."""
    (tmp_path / "s").write_bytes(b"")
    with pytest.raises(cdcavro.RegistryError, match="the folder cannot be used"):
        registry.connect(f"file:{tmp_path / 's'}").publish('"int"', "s")


@pytest.mark.slow
def test_many_versions_cost_no_more_than_a_few(tmp_path, monkeypatch):
    """To fetch and to publish, a few files are opened, however many there are."""
    many(tmp_path, 1_000)
    opened = []
    real = Path.open
    monkeypatch.setattr("pathlib.Path.open", lambda self, *more: (opened.append(self), real(self, *more))[1])
    schemas = registry.connect(f"file:{tmp_path}")
    assert schemas.fetch(subject="s").version == 1_000
    assert schemas.fetch(id=500).id == 500
    made = schemas.publish(json.dumps(record(field("x"), name="R1000", aliases=("Q",))), "s")
    assert (made.id, made.version) == (1_001, 1_001)
    assert len(opened) < 50


def test_what_was_fetched_is_not_read_again(tmp_path, monkeypatch):
    """But for the latest version; and that something is missing is not asked again at once."""
    schemas = registry.connect(f"file:{tmp_path}")
    made = schemas.publish('"int"', "s")
    asked = []
    backend = schemas._backend
    for name in ("by_id", "version"):
        real = getattr(backend, name)
        monkeypatch.setattr(backend, name, lambda *of, real=real: (asked.append(of), real(*of))[1])
    for _ in range(3):
        schemas.fetch(id=made.id)
        schemas.fetch(subject="s", version=1)
        with pytest.raises(cdcavro.UnknownSchemaError):
            schemas.fetch(id=99)
    assert asked == [(made.id,), ("s", 1), (99,)]
    schemas.fetch(subject="s")
    schemas.fetch(subject="s")
    assert asked[3:] == [("s", None), ("s", None)]


def test_the_cache_is_bounded_and_what_was_missing_is_soon_forgotten():
    """The longest unused makes room; a missing key is one for some seconds."""
    from cdcavro.registry.client import SchemaCache  # noqa: PLC0415

    now = [0.0]
    cache: SchemaCache[int] = SchemaCache(2, 5.0, lambda: now[0])
    for key in range(3):
        cache.put(key, key)
        cache.get(0)
        cache.put_missing(-key, f"key {key}")
    assert [cache.get(key) for key in range(3)] == [0, None, 2]
    assert [cache.missing(-key) for key in range(3)] == [None, "key 1", "key 2"]
    now[0] = 5.0
    assert cache.missing(-2) is None
    cache.put_missing(-2, "again")
    cache.forget_missing()
    assert cache.missing(-2) is None


@pytest.mark.parametrize(
    ("url", "folder"),
    [
        ("file:schemas", "file:schemas"),
        ("file:/a/b", "file:/a/b"),
        ("file:///a/b%20c", "file:/a/b c"),
        ("file://localhost/a", "file:/a"),
        ("FILE:a%20b", "file:a%20b"),
    ],
)
def test_a_folder_has_several_addresses(url, folder):
    """As RFC 8089 writes them, or a plain path."""
    assert registry.connect(url).url == folder


@pytest.mark.parametrize(
    "url", ["", "schemas", "file:", "file://host/a", "ftp://u:canary@h/", "file:a\nb", "http:", "http://"]
)
def test_what_is_no_address_is_refused(url):
    """Nothing of it that could be a secret is said."""
    with pytest.raises(cdcavro.RegistryError) as caught:
        registry.connect(url)
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    "wanted",
    [
        {},
        {"version": 1},
        {"id": 1, "fingerprint": "0" * 16},
        {"id": 1, "version": 1},
        {"id": 1, "subject": "s", "version": 1},
        {"fingerprint": "0" * 16, "guid": "x"},
    ],
)
def test_fetch_takes_one_way_to_say_which(tmp_path, wanted):
    """Anything else is the caller's error."""
    with pytest.raises(TypeError, match="fetch takes"):
        registry.connect(f"file:{tmp_path}").fetch(**wanted)


def test_threads_of_one_program_exclude_each_other(tmp_path):
    """The lock is not the process's."""
    schemas = [registry.connect(f"file:{tmp_path / 's'}") for _ in range(4)]
    made = []

    def publish(one, number):
        made.append(one.publish(json.dumps(record(name=f"R{number}")), "s", compatibility="NONE"))

    threads = [threading.Thread(target=publish, args=(one, number)) for number, one in enumerate(schemas)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(one.version for one in made) == [1, 2, 3, 4]
    assert sorted(one.id for one in made) == [1, 2, 3, 4]


def _published(folder: Path) -> Path:
    """Return a folder with a registry in it, and one beside it that is somebody's own."""
    registry.connect(f"file:{folder}").publish('"int"', "s")
    own = folder.with_name("own")
    (own / "s").mkdir(parents=True)
    (own / "precious").write_text("mine")
    (own / "1.json").write_text('{"id":1,"guid":"0","schema":"\\"string\\"","references":[],"subject":"s","version":1}')
    return own


@pytest.mark.parametrize("name", ["parts", "schemas", "guids", "fingerprints", "uses", "subjects", "subjects/s"])
def test_a_link_in_place_of_a_folder_is_not_followed(tmp_path, name):
    """Whoever may write there could have a publisher remove files elsewhere, or readers read them."""
    folder = tmp_path / "r"
    own = _published(folder)
    before = {path: path.stat().st_mtime_ns for path in own.rglob("*")}
    shutil.rmtree(folder / name)
    (folder / name).symlink_to(own if name != "subjects/s" else own / "s")
    said = f"registry file:{folder}: {name} is damaged: it is no folder"
    assert error_of(registry.connect(f"file:{folder}").publish, '"long"', "s") == said
    assert {path: path.stat().st_mtime_ns for path in own.rglob("*")} == before
    if name != "parts":
        for find in ({"subject": "s"}, {"id": 1}):
            with contextlib.suppress(cdcavro.CdcAvroError):
                assert (
                    registry.connect(f"file:{folder}").fetch(**find).schema.root == cdcavro.parse_schema('"int"').root
                )


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.mkdir(), lambda path: path.symlink_to("/dev/zero")])
@pytest.mark.parametrize("name", ["lock", "registry.json", "schemas/1.json", "subjects/s/1.json", "uses/1.jsonl"])
def test_what_is_no_regular_file_is_refused_and_not_waited_for(tmp_path, name, make):
    """A pipe would block whoever opens it, for ever."""
    folder = tmp_path / "r"
    _published(folder)
    (folder / name).unlink()
    make(folder / name)
    open_registry = registry.connect(f"file:{folder}")
    said = f"registry file:{folder}: {name} is damaged: it is no regular file"
    assert error_of(open_registry.publish, '"int"', "s") == said
    if name == "registry.json":
        assert error_of(open_registry.subjects) == said
    elif name not in ("lock", "uses/1.jsonl"):
        assert error_of(lambda: open_registry.fetch(subject="s", version=1)) == said
