"""Cipher of rejects: what is encrypted is read by the private key alone, in every place, and keys are shown nowhere."""

from __future__ import annotations

import dataclasses
import json
import pickle
import sys
from base64 import b64decode, b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric import ed25519, x25519
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from cdcavro.cli import main
from cdcavro.errors import FileError, PayloadError, SetupError
from cdcavro.sync.config import read_config
from cdcavro.sync.outputs.reject_places import (
    LAYERS,
    MAGIC,
    RejectCipher,
    check_decrypted,
    has_encrypted,
    is_encrypted,
    replay,
)
from cdcavro.sync.settings import Settings
from support.local_pipelines import LocalJob, lake_section
from support.messages import canal


def keys() -> tuple[str, str]:
    """Return a public and a private key in PEM."""
    private = x25519.X25519PrivateKey.generate()
    public = private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return public.decode(), private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


PUBLIC, PRIVATE = keys()
CIPHER = RejectCipher.of(PUBLIC, PRIVATE)


@pytest.fixture
def job(tmp_path: Path) -> Callable[..., LocalJob]:
    """Make a job of the local runner, whose rejects are encrypted."""

    def make(**lake: Any) -> LocalJob:
        (tmp_path / "j").mkdir()
        (tmp_path / "j" / "public.pem").write_text(PUBLIC)
        (tmp_path / "j" / "private.pem").write_text(PRIVATE)
        more = {"rejects_raw": "encrypt", "rejects_public_key": str(tmp_path / "j" / "public.pem")}
        return LocalJob(tmp_path / "j", lake_section("delta", tmp_path / "j", **lake), more)

    return make


def lines(folder: Path) -> list[dict[str, Any]]:
    """Return the rejects below a folder."""
    return [json.loads(line) for path in sorted(folder.rglob("*.json")) for line in path.open()]


@pytest.mark.parametrize("value", [b"", b"x", b"canary" * 1000, MAGIC + b"no more"])
def test_what_is_encrypted_is_decrypted_by_the_private_key_alone(value: bytes):
    """And only as the part that it was; each time it is another text."""
    assert CIPHER is not None
    made = CIPHER.encrypt(value, "raw")
    assert made is not None
    assert is_encrypted(made)
    assert made != CIPHER.encrypt(value, "raw")
    assert len(value) < 2 or value not in made
    assert CIPHER.decrypt(made, "raw") == value
    others = [made[:-1], made[:-1] + bytes([made[-1] ^ 1]), made[:20] + bytes(32) + made[52:], MAGIC, made[:45]]
    for other in others:
        with pytest.raises(PayloadError, match="got those for another key, or damaged ones"):
            CIPHER.decrypt(other, "raw")
    with pytest.raises(PayloadError, match="for another key"):
        CIPHER.decrypt(made, "record_key")
    with pytest.raises(PayloadError, match="for another key"):
        RejectCipher.of_private(keys()[1]).decrypt(made, "raw")
    with pytest.raises(PayloadError, match=r"expected rejects_private_key, the key by which .* are read, got none"):
        pickle.loads(pickle.dumps(RejectCipher.of(PUBLIC, None))).decrypt(made, "raw")
    assert CIPHER.encrypt(None, "raw") is None


def test_the_format_is_what_the_page_says(job):
    """Written once more from its words, with the library alone."""
    assert CIPHER is not None
    for part in ("raw", "record_key"):
        made = CIPHER.encrypt(b"canary", part)
        assert made is not None
        reader = x25519.X25519PrivateKey.from_private_bytes(CIPHER.__reduce__()[1][1])
        assert made[:8] == b"cdcavro\x01"
        shared = reader.exchange(x25519.X25519PublicKey.from_public_bytes(made[8:40]))
        salt = made[8:40] + reader.public_key().public_bytes_raw()
        key = HKDF(SHA256(), 32, salt, b"cdcavro reject " + part.encode()).derive(shared)
        assert AESGCM(key).decrypt(made[40:52], made[52:], b"cdcavro\x01" + part.encode()) == b"canary"
        with pytest.raises(InvalidTag):
            AESGCM(key).decrypt(made[40:52], made[52:], b"cdcavro\x01")


def test_keys_are_shown_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """By no repr, and by no error; what is no key is not shown either, as it may be one of another form."""
    body = PRIVATE.splitlines()[1]
    monkeypatch.setenv("REJECTS_KEY", PRIVATE)
    path = tmp_path / "sync.toml"
    head = 'state = "s"\nrejects_raw = "encrypt"\nrejects_public_key = "{}"\nrejects_private_key = {}\n'
    tail = '[source]\nfiles = "in"\n[lake]\ndelta = "lake"\n'
    (tmp_path / "public.pem").write_text(PUBLIC)
    public = tmp_path / "public.pem"
    path.write_text(head.format(public, '"${REJECTS_KEY}"') + tail)
    config = read_config(path)
    made = config.pipeline("x")
    assert made.settings.cipher is not None
    assert body not in repr(config) + repr(made) + repr(made.settings) + repr(made.settings.cipher)
    assert body not in str(config.redaction.of(f"it is {PRIVATE}"))
    path.write_text(head.format(public, f'"""{PRIVATE}"""') + tail)
    with pytest.raises(FileError, match="rejects_private_key is the path of a file or comes from a variable") as caught:
        read_config(path)
    assert body not in str(caught.value)
    ed = ed25519.Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    for stated in (body, f"a/{body}", PRIVATE.replace(body, body[:-3]), ed, PUBLIC, "nowhere.pem"):
        with pytest.raises(ValueError, match="rejects_private_key is a private key of X25519 in PEM") as wrong:
            Settings(rejects_private_key=stated)
        assert body[:-3] not in str(wrong.value) + repr(wrong.value.__cause__)


def test_encryption_needs_a_public_key_and_the_library(monkeypatch: pytest.MonkeyPatch):
    """And a public key is for it alone."""
    said = 'rejects_raw = "encrypt" needs a rejects_public_key, which is for nothing else'
    with pytest.raises(ValueError, match=said):
        Settings(rejects_raw="encrypt")
    with pytest.raises(ValueError, match=said):
        Settings(rejects_public_key=PUBLIC)
    assert Settings(rejects_private_key=PRIVATE).cipher is not None
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.asymmetric", None)
    with pytest.raises(SetupError, match=r"is not installed: pip install 'cdcavro\[encrypt\]'"):
        Settings(rejects_raw="encrypt", rejects_public_key=PUBLIC)


@pytest.mark.slow
def test_rejects_are_encrypted_wherever_they_are_and_are_read_again_with_the_key(job):
    """In the folder and the table. Without the key, or with another one, they are rejects again, and nothing is lost."""
    made = job()
    made.more["rejects_table"] = "ops.rejects"
    bad = canal("INSERT", [{"id": "1", "a": "canary"}], id=1)
    made.send(bad, canal("INSERT", [{"id": "2", "a": "5"}], id=2), MAGIC + b"canary", b"canary")
    strict = {"tables": {"zone": "UTC", "on_misfit": "reject"}}
    (report,) = made.run(**strict)
    assert (report.counts["written"], report.counts["rejected"]) == (1, 3)
    rejects, again = made.folder / "state" / "rejects", made.folder / "state" / "replay"
    raws = [b64decode(one["raw"]) for one in lines(rejects)]
    assert CIPHER is not None
    assert [CIPHER.decrypt(one, "raw") for one in raws] == [bad, MAGIC + b"canary", b"canary"]
    assert sorted(CIPHER.decrypt(raw, "raw") for (raw,) in made.rows("ops.rejects", "raw")) == sorted(
        [bad, MAGIC + b"canary", b"canary"]
    )
    # Bytes are in base64 in the folder.
    state = [path.read_bytes() for path in (made.folder / "state").rglob("*") if path.is_file()]
    assert not [text for text in state if b64encode(b"canary") in text or b64encode(bad)[:40] in text]
    for key, said in ((None, "expected rejects_private_key, the key by which"), (keys()[1], "those for another key")):
        replay(rejects, again)
        pipeline = made.pipeline(**strict)
        settings = dataclasses.replace(pipeline.settings, rejects_private_key=key)
        reports: list[Any] = []
        dataclasses.replace(pipeline, settings=settings).run(once=True, say=reports.append)
        assert [reports[0].counts[name] for name in ("read", "rejected")] == [3, 3]
        assert all(said in one["reason"] for one in lines(rejects))
    replay(rejects, again)
    (report,) = made.run(rejects_private_key=str(made.folder / "private.pem"))
    assert [report.counts[name] for name in ("read", "written", "rejected")] == [3, 1, 2]
    assert made.rows("d.t", "id", "a") == [(1, None), (2, 5)]
    assert not [
        path for path in (made.folder / "state").rglob("*") if path.is_file() and b"BEGIN P" in path.read_bytes()
    ]


def test_a_reject_that_another_key_could_not_open_keeps_its_place_in_the_order(job):
    """The time of its lane, by which its change comes behind the one before it although the source's clock went back."""
    made = job()
    bad = canal("UPDATE", [{"id": "1", "a": "x"}], id=2, es=2000, old=[{"a": "1"}])
    made.send(canal("INSERT", [{"id": "1", "a": "1"}], id=1, es=5000), bad)
    made.run(tables={"zone": "UTC", "on_misfit": "reject"})
    folder, again = made.folder / "state" / "rejects", made.folder / "state" / "replay"
    (before,) = lines(folder)
    assert before["clock"] == "[2, [5000, 1], 0]"
    for key in (None, keys()[1]):
        replay(folder, again)
        pipeline = made.pipeline()
        settings = dataclasses.replace(pipeline.settings, rejects_private_key=key)
        dataclasses.replace(pipeline, settings=settings).run(once=True)
        (left,) = lines(folder)
        assert (left["format"], left["clock"]) == (None, before["clock"])
    replay(folder, again)
    made.run(rejects_private_key=str(made.folder / "private.pem"))
    assert made.rows("d.t", "id", "a") == [(1, None)]


def test_replay_without_a_configuration_says_what_encrypted_rejects_need(job, tmp_path):
    """It cannot look for the key there; of others, and with a configuration that has it, nothing is said."""
    made = job()
    made.send(b"canary")
    for has_config in (False, True):
        made.run()
        config = ("--config", str(made.config(rejects_private_key="private.pem"))) if has_config else ()
        arguments = (*config, "--state", str(made.folder / "state"))
        done = CliRunner().invoke(main, ("replay", *arguments), catch_exceptions=False)
        assert (done.exit_code, done.stdout) == (0, "the rejects of 1 batch will be read again\n"), done.stderr
        assert ("give it rejects_private_key for as long as they are read" in done.stderr) != has_config
    (tmp_path / "batch=0").mkdir()
    (tmp_path / "batch=0" / "a.json").write_text('{"raw":"YQ=="}\n')
    (tmp_path / "batch=0" / "b.json").write_text("")
    assert not has_encrypted([tmp_path / "batch=0"])


def test_reasons_of_encrypted_rejects_quote_nothing(job):
    """Neither in their lines nor in the report, the account and the state."""
    made = job()
    made.send(b"canary is no JSON")
    (report,) = made.run()
    (reject,) = lines(made.folder / "state" / "rejects")
    assert reject["reason"].startswith("canal: $: expected JSON, got …")
    assert "canary" not in str(report)
    files = [path for path in (made.folder / "state").rglob("*") if path.is_file()]
    assert not [path.name for path in files if b"canary" in path.read_bytes()]


def test_a_batch_that_is_run_again_has_its_rejects_once(job):
    """Though their bytes are encrypted anew."""
    made = job()
    made.more["rejects_table"] = "ops.rejects"
    made.send(b"canary")
    made.run()
    (made.folder / "state" / "checkpoint" / "commits" / "0").unlink()
    made.run()
    assert len(made.rows("ops.rejects", "raw")) == len(lines(made.folder / "state" / "rejects")) == 1


def test_messages_that_are_read_again_are_decrypted_with_their_keys():
    """Others that look like it are not; a key of a record is decrypted, too."""
    assert CIPHER is not None
    sealed, key = CIPHER.encrypt(b"value", "raw"), CIPHER.encrypt(b"key", "record_key")
    twice = CIPHER.encrypt(sealed, "raw")
    rows = [(sealed, 9, key, "null"), (sealed, 9, key, None), (b"plain", 5, None, "null"), (twice, 9, None, "null")]
    names = {"raw": pa.binary(), "length": pa.int64(), "key": pa.binary(), "clock": pa.string()}
    batch = pa.RecordBatch.from_pylist(
        [dict(zip(names, row, strict=True)) for row in rows], pa.schema(list(names.items()))
    )
    found = [tuple(row.values()) for row in CIPHER.decrypted(batch).to_pylist()]
    assert found == [(b"value", 5, b"key", "null"), rows[1], rows[2], (b"value", 5, None, "null")]
    # Of a message that was too long, a reject has the beginning only, and the length of all.
    cut = pa.RecordBatch.from_pylist([{"raw": sealed, "length": 73_400_482, "clock": "null"}], batch.schema)
    assert CIPHER.decrypted(cut).column("length").to_pylist() == [73_400_482]
    deep: bytes | None = b"deep"
    for _ in range(LAYERS + 1):
        deep = CIPHER.encrypt(deep, "raw")
    (left,) = CIPHER.decrypted(pa.RecordBatch.from_pylist([{"raw": deep, "clock": "null"}], batch.schema)).to_pylist()
    assert is_encrypted(left["raw"])
    with pytest.raises(PayloadError, match=f"encrypted at most {LAYERS} times, got more"):
        check_decrypted(left["raw"], CIPHER)
    assert RejectCipher.of(PUBLIC, None).decrypted(batch) is batch  # type: ignore[union-attr]


def test_replay_says_which_key_is_missing_before_it_moves_anything(job):
    """And takes the rejects if it is there."""
    made = job()
    made.send(b"canary")
    made.run()
    done = CliRunner().invoke(main, ["replay", "--config", str(made.config())])
    assert done.exit_code == 2
    assert "expected rejects_private_key, by which the next batch reads the encrypted rejects, got none" in done.stderr
    assert len(lines(made.folder / "state" / "rejects")) == 1
    path = made.config(rejects_private_key=str(made.folder / "private.pem"))
    assert CliRunner().invoke(main, ["replay", "--config", str(path)]).exit_code == 0


def test_rejects_are_decrypted_by_a_command(job):
    """With their other facts as they are; a line that is for another key stays as it is, and is told."""
    made = job()
    made.send(b"canary", b"{")
    made.run()
    folder, key = made.folder / "state" / "rejects", made.folder / "private.pem"
    before = lines(folder)
    done = CliRunner().invoke(main, ["decrypt", str(folder), "--key", str(key)])
    assert (done.exit_code, done.stderr) == (0, "read 2 = decrypted 2 + not decrypted 0\n")
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [b64decode(one["raw"]) for one in found] == [b"canary", b"{"]
    assert [one | {"raw": None} for one in found] == [one | {"raw": None} for one in before]
    (made.folder / "other.pem").write_text(keys()[1])
    done = CliRunner().invoke(main, ["decrypt", str(folder), "--key", str(made.folder / "other.pem")])
    assert done.exit_code == 1
    assert done.stderr.endswith("read 2 = decrypted 0 + not decrypted 2\n")
    assert (
        "json:1: expected bytes of a reject for the private key that is given, got those for another key" in done.stderr
    )
    assert [json.loads(line) for line in done.stdout.splitlines()] == before
    done = CliRunner().invoke(main, ["decrypt", "-", "--key", str(made.folder / "public.pem")], input=b"5\n")
    assert done.exit_code == 2
    assert "expected a private key of X25519 in PEM without a password, got something else" in done.stderr
