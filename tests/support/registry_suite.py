"""Tests that every registry passes: tests/registry runs them on a folder, tests/services on real servers.

`place` is a fresh `Place`: a registry, a prefix for the test's own subjects, and how this kind of registry differs.
"""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from uuid import uuid4

import pytest

import cdcavro
from cdcavro import registry
from cdcavro.registry.backend import normal_form
from support.wire import array, enum, record
from support.wire import field as f

V1 = record(f("x"), name="a.R")
WIDER = record(f("x", "long"), name="a.R")
BROKEN = record(f("x", "string"), name="a.R")


@dataclass(frozen=True)
class Differences:
    """How a registry differs from Confluent's: the only points in which the tests may differ."""

    level: str = "BACKWARD"
    has_guids: bool = True
    judges_scale: bool = True


# The known differences of registries, in one table.
KNOWN = {
    "file": Differences(),
    "apicurio": Differences(level="NONE", has_guids=False, judges_scale=False),
}


@dataclass(frozen=True)
class Place:
    """A registry under test; the names of a test's subjects start with `subject`."""

    url: str
    differences: Differences
    subject: str = field(default_factory=lambda: f"t{uuid4().hex[:12]}-value")

    def connect(self) -> registry.Registry:
        """Connect as another program would, with an empty cache."""
        return registry.connect(self.url)

    @property
    def registry(self) -> registry.Registry:
        """A new connection to the registry."""
        return self.connect()


def text(schema) -> str:
    """Return a schema as JSON text."""
    return json.dumps(schema)


def test_ids_and_versions_begin_and_go_on(place):
    """A version for each schema; the id is the schema's, in any subject."""
    schemas, other = place.registry, place.subject + "-other"
    first = schemas.publish(text(V1), place.subject)
    second = schemas.publish(text(WIDER), place.subject)
    elsewhere = schemas.publish(text(V1), other)
    assert (first.version, second.version, elsewhere.version) == (1, 2, 1)
    assert first.id == elsewhere.id != second.id
    assert (first.is_new, second.is_new, elsewhere.is_new) == (True, True, True)
    assert schemas.versions(place.subject) == [1, 2]
    assert {place.subject, other} <= set(schemas.subjects())
    assert schemas.versions(place.subject + "-none") == []


def test_publishing_twice_is_one_version(place):
    """Also by another program, and written otherwise."""
    first = place.registry.publish(text(V1), place.subject)
    again = place.connect().publish(text(V1), place.subject)
    spread = place.connect().publish(json.dumps(V1, sort_keys=True, indent=2), place.subject)
    assert (again.id, again.version, again.is_new) == (first.id, 1, False)
    assert (spread.id, spread.version, spread.is_new) == (first.id, 1, False)
    assert place.registry.versions(place.subject) == [1]


def test_an_older_version_published_again_is_that_version(place):
    """It does not become the latest, however it is written."""
    schemas = place.registry
    for schema in (V1, WIDER):
        schemas.publish(text(schema), place.subject)
    assert schemas.publish(text(V1), place.subject).version == 1
    assert schemas.publish(json.dumps(V1, sort_keys=True), place.subject).version == 1
    assert schemas.versions(place.subject) == [1, 2]


@pytest.mark.parametrize(
    "change",
    [
        {"aliases": ["Q"]},
        {"doc": "words"},
        {"cdc": {"table": "t"}},
        {"fields": [f("x", aliases=["y"])]},
        {"fields": [f("x", default=1)]},
    ],
    ids=["alias", "doc", "attribute", "alias of a field", "default"],
)
def test_what_a_fingerprint_does_not_see_is_a_new_version(place, change):
    """Each is told apart, and comes back as it was published."""
    schemas = place.registry
    schemas.publish(text(V1), place.subject)
    changed = V1 | change
    assert cdcavro.parse_schema(text(changed)).fingerprint == cdcavro.parse_schema(text(V1)).fingerprint
    made = schemas.publish(text(changed), place.subject)
    assert (made.version, made.is_new) == (2, True)
    fetched = place.connect().fetch(id=made.id)
    assert json.loads(fetched.schema.json) == changed


def test_a_breaking_schema_is_refused_with_each_reason(place):
    """Nothing is written."""
    schemas = place.registry
    schemas.publish(text(V1), place.subject, compatibility="BACKWARD")
    broken = record(f("x", "string"), f("y"), name="a.R")
    with pytest.raises(cdcavro.IncompatibleError) as caught:
        schemas.publish(text(broken), place.subject)
    assert str(caught.value) == (
        f"subject '{place.subject}' is BACKWARD, and the schema is not:\n"
        "  version 1: backward, $.x: string cannot read int\n"
        "  version 1: backward, $: y is new and has no default"
    )
    assert schemas.versions(place.subject) == [1]


@pytest.mark.parametrize(
    ("level", "allowed", "refused"),
    [
        ("BACKWARD", WIDER, BROKEN),
        ("FORWARD", record(f("x"), f("y"), name="a.R"), WIDER),
        ("FULL", record(f("x"), f("y", default=1), name="a.R"), WIDER),
    ],
)
def test_a_level_refuses_what_it_does_not_allow(place, level, allowed, refused):
    """The level given becomes the subject's, on the server too."""
    schemas = place.registry
    schemas.publish(text(V1), place.subject, compatibility=level)
    assert place.connect().compatibility(place.subject) == level
    with pytest.raises(cdcavro.IncompatibleError):
        place.connect().publish(text(refused), place.subject)
    assert place.connect().publish(text(allowed), place.subject).version == 2


def test_a_transitive_level_looks_at_all_versions(place):
    """A default that was there for one version hides nothing from it."""
    schemas = place.registry
    steps = (V1, record(f("x"), f("y", default=1), name="a.R"))
    for step in steps:
        schemas.publish(text(step), place.subject, compatibility="BACKWARD")
    third = text(record(f("x"), f("y"), name="a.R"))
    assert schemas.judge(third, place.subject).breaks == ()
    with pytest.raises(cdcavro.IncompatibleError) as caught:
        schemas.publish(third, place.subject, compatibility="BACKWARD_TRANSITIVE")
    assert [one.split(":")[0] for one in caught.value.reasons] == ["version 1"]
    assert place.connect().compatibility(place.subject) == "BACKWARD"


def test_a_subject_without_a_level_has_that_of_the_registry(place):
    """BACKWARD in Confluent's and in a folder."""
    schemas = place.registry
    schemas.publish(text(V1), place.subject)
    assert schemas.compatibility(place.subject) == place.differences.level


def test_level_none_refuses_nothing_and_says_the_verdict(place):
    """It is told what breaks all the same."""
    schemas = place.registry
    schemas.publish(text(V1), place.subject, compatibility="NONE")
    made = schemas.publish(text(BROKEN), place.subject)
    assert (made.version, made.verdict.name) == (2, "breaking")


def test_force_publishes_what_breaks_and_leaves_the_level(place):
    """Where the server itself refuses the schema, too."""
    schemas = place.registry
    schemas.publish(text(V1), place.subject, compatibility="FULL")
    made = schemas.publish(text(BROKEN), place.subject, force=True)
    assert (made.version, made.is_new, made.verdict.name) == (2, True, "breaking")
    assert place.connect().compatibility(place.subject) == "FULL"


def test_a_changed_scale_is_refused(place):
    """Servers pass it, and 1.23 would be read as 0.123."""
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 9}
    schemas = place.registry
    schemas.publish(text(decimal | {"scale": 2}), place.subject, compatibility="FULL")
    with pytest.raises(cdcavro.IncompatibleError, match="scale 3 cannot read scale 2"):
        schemas.publish(text(decimal | {"scale": 3}), place.subject)


def test_a_rehearsal_tells_all_and_writes_nothing(place):
    """Several versions in a row, each judged by those before it, and references too."""
    schemas = place.registry
    schemas.publish(text(V1), place.subject, compatibility="BACKWARD")
    assert schemas.publish(text(WIDER), place.subject, dry_run=True).id is None
    rehearsal = schemas.rehearsal()
    assert rehearsal.publish(text(WIDER), place.subject, compatibility="FULL", force=True).version == 2
    assert rehearsal.publish(text(WIDER), place.subject).is_new is False
    with pytest.raises(cdcavro.IncompatibleError, match="version 2"):
        rehearsal.publish(text(V1 | {"doc": "d"}), place.subject)
    shared = place.subject + "-shared"
    using = record(f("e", enum("A", name="a.E")), name="a.U")
    made = rehearsal.publish(text(using), place.subject + "-using", references={"a.E": shared})
    assert (made.version, made.id) == (1, None)
    assert json.loads(rehearsal.fetch(subject=place.subject + "-using").schema.json) == using
    after = place.connect()
    assert after.versions(place.subject) == [1]
    assert after.compatibility(place.subject) == "BACKWARD"
    assert after.versions(shared) == after.versions(place.subject + "-using") == []


def test_a_check_gives_the_verdict_and_writes_nothing(place):
    """On the versions that the level looks at; on a new subject there are none."""
    schemas = place.registry
    schemas.publish(text(V1), place.subject, compatibility="BACKWARD")
    assert schemas.check(text(WIDER), place.subject).name == "backward"
    assert [str(one) for one in schemas.check(text(BROKEN), place.subject).problems] == [
        "backward, $.x: string cannot read int",
        "forward, $.x: int cannot read string",
    ]
    assert schemas.check(text(BROKEN), place.subject + "-new").name == "full"
    assert schemas.versions(place.subject) == [1]


def test_what_is_fetched_is_what_was_published(place):
    """By id, by version, by subject, with the same facts."""
    made = place.registry.publish(text(V1), place.subject)
    schemas = place.connect()
    by_version = schemas.fetch(subject=place.subject, version=1)
    assert json.loads(by_version.schema.json) == V1
    assert (by_version.id, by_version.subject, by_version.version) == (made.id, place.subject, 1)
    latest = schemas.fetch(subject=place.subject)
    assert latest == schemas.fetch(subject=place.subject, version="latest") == by_version
    in_subject = schemas.fetch(id=made.id, subject=place.subject)
    assert (in_subject.subject, in_subject.version) == (place.subject, 1)


def test_an_id_tells_its_only_version_or_none(place):
    """Where several subjects have the schema, none is picked."""
    schema = text(V1 | {"doc": place.subject})
    made = place.registry.publish(schema, place.subject)
    found = place.connect().fetch(id=made.id)
    assert (found.subject, found.version) == (place.subject, 1)
    place.registry.publish(schema, place.subject + "-2")
    found = place.connect().fetch(id=made.id)
    assert (found.subject, found.version) == (None, None)
    found = place.connect().fetch(id=made.id, subject=place.subject + "-2")
    assert (found.subject, found.version) == (place.subject + "-2", 1)


@pytest.mark.parametrize(
    ("wanted", "what"),
    [
        ({"id": 2_000_000_000}, "id 2000000000"),
        ({"id": 0}, "id 0"),
        ({"id": 2**31}, "id 2147483648"),
        ({"subject": "none"}, "subject 'none'"),
        ({"subject": "none", "version": 1}, "subject 'none'"),
        ({"subject": "", "version": 7}, "version 7 of subject ''"),
        ({"subject": "", "version": 0}, "version 0 of subject ''"),
        ({"fingerprint": "0123456789abcdef"}, "fingerprint 0123456789abcdef"),
    ],
)
def test_what_is_not_there_is_unknown(place, wanted, what):
    """Each is the same error, that names it."""
    schemas = place.registry
    schemas.publish(text(V1), place.subject)
    if wanted.get("subject") == "":
        wanted, what = wanted | {"subject": place.subject}, what.replace("''", f"'{place.subject}'")
    for _ in range(2):
        with pytest.raises(cdcavro.UnknownSchemaError) as caught:
            schemas.fetch(**wanted)
        assert str(caught.value) == f"registry {place.url}: there is no {what}"


def test_a_fingerprint_finds_the_newest_of_those_that_read_alike(place):
    """Aliases are nothing to it; schemas whose logical types differ are not guessed among."""
    schemas = place.registry
    name = f"a.{place.subject.split('-')[0]}"
    plain, renamed = V1 | {"name": name}, V1 | {"name": name, "aliases": ["a.Q"]}
    for schema in (plain, renamed):
        made = schemas.publish(text(schema), place.subject)
    fingerprint = cdcavro.parse_schema(text(plain)).fingerprint
    found = place.connect().fetch(fingerprint=fingerprint)
    assert (found.id, json.loads(found.schema.json)) == (made.id, renamed)
    date = {"type": "int", "logicalType": "date"}
    other = record(f("x", date), name=name)
    schemas.publish(text(other), place.subject + "-other")
    with pytest.raises(cdcavro.RegistryError, match=r"3 schemas have the fingerprint .* read differently"):
        place.connect().fetch(fingerprint=fingerprint)


def test_shared_types_go_as_references(place):
    """They are one subject each; what is fetched is whole, and publishing again is one version."""
    shared, parts = place.subject + "-shared", place.subject + "-parts"
    kind = enum("A", "B", name="a.Kind")
    address = record(f("city", "string"), f("kind", kind), name="a.Address")
    person = record(f("home", address), f("work", ["null", "a.Address"]), f("kinds", array("a.Kind")), name="a.Person")
    schemas = place.registry
    references = {"a.Address": shared, "a.Kind": parts}
    made = schemas.publish(text(person), place.subject, references=references)
    again = place.connect().publish(text(person), place.subject, references=references)
    assert (again.id, again.version, again.is_new) == (made.id, 1, False)
    fresh = place.connect()
    assert (fresh.versions(shared), fresh.versions(parts)) == ([1], [1])
    for found in (fresh.fetch(id=made.id), fresh.fetch(subject=place.subject)):
        assert json.loads(found.schema.json) == person
        assert {(one.name, one.subject, one.version) for one in found.references} == {
            ("a.Address", shared, 1),
            ("a.Kind", parts, 1),
        }
    assert json.loads(fresh.fetch(subject=shared).schema.json) == address
    payload = bytes([2, 97, 0, 0, 2, 0, 0])
    registered, rest = fresh.open(registry.frame(payload, made.id))
    assert (registered.id, rest) == (made.id, payload)


def test_a_changed_shared_type_is_a_new_version_of_both(place):
    """And one that breaks its own subject is refused."""
    shared = place.subject + "-shared"
    schemas = place.registry

    def published(kind, **more):
        return schemas.publish(
            text(record(f("k", kind), name="a.Using")), place.subject, references={"a.K": shared}, **more
        )

    published(enum("A", name="a.K"), compatibility="BACKWARD")
    schemas.publish(text(enum("A", name="a.K")), shared, compatibility="BACKWARD")
    made = published(enum("A", "B", name="a.K"))
    assert (made.version, schemas.versions(shared)) == (2, [1, 2])
    with pytest.raises(cdcavro.IncompatibleError) as caught:
        published(enum("B", name="a.K"))
    assert caught.value.subject == shared


@pytest.mark.parametrize(
    "name", ["a/b", "ü ö 表", "a%2Fb", ".hidden", "~", ":.ctx:s", "a b+c=d@e,f(g)", "CON", "x" * 300, "q?x=1&y#z"]
)
def test_any_name_is_a_subject(place, name):
    """Names are data: none leads elsewhere or meets another."""
    name = f"{name}{place.subject}"
    schemas = place.registry
    made = schemas.publish(text(V1), name)
    assert (made.subject, schemas.versions(name)) == (name, [1])
    assert name in schemas.subjects()
    assert schemas.fetch(subject=name).subject == name


@pytest.mark.parametrize("name", ["", ".", "..", "a\nb", "a\x00", "x" * 1001, "\ud800"])
def test_what_is_no_name_is_refused(place, name):
    """Before anything is asked."""
    for ask in (place.registry.versions, lambda one: place.registry.publish(text(V1), one)):
        with pytest.raises(cdcavro.RegistryError, match="a subject's name"):
            ask(name)


def test_what_is_no_schema_is_refused(place):
    """By us, before anything is sent."""
    place.registry.publish(text(V1), place.subject + "-other")
    with pytest.raises(cdcavro.SchemaError):
        place.registry.publish('{"type": "recrd"}', place.subject)
    assert place.registry.versions(place.subject) == []


@pytest.mark.parametrize("format", ["oms_canal", "debezium", "change"])
def test_wire_schemas_come_back_whole(place, format):
    """With all their attributes."""
    schema = cdcavro.load_schema(format)
    made = place.registry.publish(schema, place.subject)
    found = place.connect().fetch(id=made.id)
    assert normal_form(found.schema.json) == normal_form(schema.json)
    assert found.schema.fingerprint == schema.fingerprint


def test_framed_payloads_open_by_id_and_by_fingerprint(place):
    """The writer's schema comes with the payload, which is checked to its last byte."""
    schema = text(V1 | {"name": f"a.{place.subject.split('-')[0]}"})
    made = place.registry.publish(schema, place.subject)
    schemas = place.connect()
    fingerprint = registry.Fingerprint(cdcavro.parse_schema(schema).fingerprint)
    for id in (made.id, fingerprint):
        found, payload = schemas.open(registry.frame(b"\x0e", id))
        assert (found.id, payload) == (made.id, b"\x0e")
        with pytest.raises(cdcavro.PayloadError, match="end of the payload at byte 1, got 1 more"):
            schemas.open(registry.frame(b"\x0e\x00", id))
        with pytest.raises(cdcavro.PayloadError, match="1 byte, got 0"):
            schemas.open(registry.frame(b"", id))
    with pytest.raises(cdcavro.PayloadError) as caught:
        schemas.open(registry.frame(b"\x0e", 1_999_999_999))
    assert str(caught.value) == f"message: $: expected a schema that {place.url} has, got id 1999999999"


def test_a_guid_finds_its_schema_where_there_are_guids(place):
    """In Kafka's header or before the payload."""
    made = place.registry.publish(text(V1), place.subject)
    guid = place.connect().fetch(id=made.id).guid
    assert (guid is not None) is place.differences.has_guids
    if guid is not None:
        schemas = place.connect()
        assert schemas.fetch(guid=guid).id == made.id
        header = registry.frame(b"", registry.Guid(guid))
        assert schemas.open(b"\x0e", header=header)[0].id == made.id
        assert schemas.open(header + b"\x0e")[1] == b"\x0e"


def test_a_new_schema_is_seen_without_delay_by_the_one_who_published_it(place):
    """What was missing a moment ago is asked for again."""
    schemas = place.registry
    schemas.publish(text(V1), place.subject + "-first")
    with pytest.raises(cdcavro.UnknownSchemaError):
        schemas.fetch(subject=place.subject)
    schemas.publish(text(V1), place.subject)
    assert schemas.fetch(subject=place.subject).version == 1


def test_many_threads_use_one_registry(place):
    """Each gets what it asks for; all that they publish is there."""
    schemas = place.registry
    faults: list[Exception] = []

    def work(number: int) -> None:
        try:
            subject = f"{place.subject}-{number % 2}"
            made = schemas.publish(text(V1 | {"doc": str(number)}), subject, compatibility="NONE")
            for _ in range(5):
                assert json.loads(schemas.fetch(id=made.id).schema.json)["doc"] == str(number)
        except Exception as error:  # noqa: BLE001  the test shows it
            faults.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    for half in range(2):
        docs = [
            json.loads(schemas.fetch(subject=f"{place.subject}-{half}", version=version).schema.json)["doc"]
            for version in schemas.versions(f"{place.subject}-{half}")
        ]
        assert sorted(docs) == [str(number) for number in range(8) if number % 2 == half]
