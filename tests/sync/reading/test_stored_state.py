"""Stored state: what is saved in an object store, who may save it, and pipelines that go on from it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import obstore
import pytest
from click.testing import CliRunner, Result
from obstore.exceptions import AlreadyExistsError
from obstore.store import MemoryStore

from cdcavro.cli import main
from cdcavro.errors import FileError, JobError, SetupError
from cdcavro.sync.native.native_tables import NativeTables
from cdcavro.sync.pipeline import FAILURE
from cdcavro.sync.reading import stored_state
from cdcavro.sync.reading.checkpoint import Checkpoint
from cdcavro.sync.reading.file_source import file_uri
from cdcavro.sync.reading.stored_state import Head, StoredState, state_folder
from cdcavro.sync.status import read_status
from support.kills import LEASE
from support.local_kills import LocalTrial
from support.local_pipelines import DELTA, LocalJob, lake_section
from support.messages import canal
from support.object_store import BUCKET, ObjectStore, object_store

ADDRESS = "s3://bucket/state"
IN_USE = "a state that no other job uses, got one that is in use"


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> MemoryStore:
    """A store in the memory of this process, which all addresses mean, and short leases."""
    store = MemoryStore()
    monkeypatch.setattr(stored_state, "_connect", lambda _: store)
    monkeypatch.setattr(stored_state, "LEASE", 0.6)
    return store


@pytest.fixture(scope="module")
def server() -> Iterator[ObjectStore]:
    """A server of S3."""
    with object_store() as made:
        yield made


@pytest.fixture
def s3(server: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
    """The same, which this process and its children find."""
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(stored_state, "LEASE", LEASE)
    return server


def put(state: StoredState, path: str, text: str) -> None:
    """Write a file of a working copy."""
    place = state.folder / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)


def listed(folder: Path) -> dict[str, str | None]:
    """Return the texts of files, and None for folders, by path."""
    return {
        path.relative_to(folder).as_posix(): path.read_text() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


def objects(store: MemoryStore) -> set[str]:
    """Return the objects that there are, but for the head."""
    return {one["path"] for some in obstore.list(store) for one in some} - {"head.json"}


def row(id: int, **more: Any) -> bytes:
    """Return an inserted row of Canal's."""
    return canal("INSERT", [{"id": str(id), "a": "1"}], id=id, **more)


def job(folder: Path, address: str = ADDRESS, **more: Any) -> LocalJob:
    """Return a pipeline whose state is in the store: current states and changelogs in a folder of this machine."""
    return LocalJob(folder, lake_section(DELTA, folder, changelog=True), {"state": address, **more})


def ids(made: LocalJob) -> list[list[tuple[Any, ...]]]:
    """Return the ids of the current state and of the changelog."""
    return [made.rows("d.t", "id"), made.rows("d.t", "id", suffix="changes")]


def cdcavro(*arguments: str) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(main, arguments, catch_exceptions=False)


def test_what_was_saved_is_what_is_found(memory: MemoryStore):
    """Files with their bytes, folders without any, and nothing of what was not saved; rejects where all is wanted."""
    state = StoredState(ADDRESS, memory)
    with state.held():
        put(state, "batches/0.json", "x")
        put(state, "rejects/batch=0/part.json", "reject")
        put(state, "spill/part", "this process's own")
        (state.folder / "waiting/3/reset=5").mkdir(parents=True)
        state.save()
        assert not (state.folder / "rejects").exists()
        put(state, "batches/0.json", "y")
        put(state, "batches/1.json", "z")
    found = {
        "batches": None,
        "batches/0.json": "x",
        "waiting": None,
        "waiting/3": None,
        "waiting/3/reset=5": None,
    }
    with state_folder(ADDRESS) as folder:
        assert listed(folder) == found
    with state.held():
        assert listed(state.folder) == found
        (state.folder / "batches/0.json").unlink()
        put(state, "batches/1.json", "z")
        state.save()
    with state_folder(ADDRESS, is_changed=True) as folder:
        assert listed(folder)["rejects/batch=0/part.json"] == "reject"
        assert "batches/0.json" not in listed(folder)
        (folder / "rejects/batch=0/part.json").rename(folder / "moved.json")
    with state_folder(ADDRESS, is_changed=True) as folder:
        assert listed(folder)["moved.json"] == "reject"
        assert "rejects/batch=0/part.json" not in listed(folder)
    # Each file has one object, and what is gone has none.
    assert len(objects(memory)) == 2


def test_a_state_that_is_held_is_refused(memory: MemoryStore):
    """As long as its holder renews it; it is free at once when that is done, and shown as in use until then."""
    one, other = StoredState(ADDRESS, memory), StoredState(ADDRESS, memory)
    with one.held():
        with (
            pytest.raises(FileError, match=f"{ADDRESS}: expected {IN_USE}, by process {os.getpid()} on "),
            other.held(),
        ):
            pass
        one.save()
    began = time.monotonic()
    with other.held():
        assert time.monotonic() - began < stored_state.LEASE


def test_a_holder_that_is_gone_loses_the_state_and_cannot_save(memory: MemoryStore, monkeypatch: pytest.MonkeyPatch):
    """Another one takes it after a while; of what the first one saves then, nothing is left."""
    monkeypatch.setattr(StoredState, "_renew", lambda *_: None)
    one, other = StoredState(ADDRESS, memory), StoredState(ADDRESS, memory)
    with one.held():
        put(one, "a", "one")
        one.save()
        with other.held():
            put(one, "b", "one")
            for _ in range(2):
                with pytest.raises(FileError, match=IN_USE):
                    one.save()
            assert objects(memory) == {found.object for found in other._find().head.files.values()}
            put(other, "b", "other")
            other.save()
    with state_folder(ADDRESS, is_changed=True) as folder:
        assert listed(folder) == {"a": "one", "b": "other"}
        assert len(objects(memory)) == 2


@pytest.mark.parametrize("is_renewed", [False, True])
def test_an_answer_that_is_lost_loses_no_state(memory: MemoryStore, monkeypatch: pytest.MonkeyPatch, is_renewed: bool):
    """The head that this process wrote, and that it was not told of, is its own: of a save, or of a renewal before."""
    own = obstore.put

    def unanswered(*args: Any, **how: Any) -> Any:
        done = own(*args, **how)
        if args[1] == "head.json":
            monkeypatch.setattr(obstore, "put", own)
            raise AlreadyExistsError("it is there") if not is_renewed else obstore.exceptions.GenericError("no answer")
        return done

    state = StoredState(ADDRESS, memory)
    with state.held():
        put(state, "a", "one")
        monkeypatch.setattr(obstore, "put", unanswered)
        if is_renewed:
            time.sleep(stored_state.LEASE / 2)
        state.save()
    with state_folder(ADDRESS) as folder:
        assert listed(folder) == {"a": "one"}


def test_a_state_is_asked_for_once_it_may_be_another_ones(memory: MemoryStore, monkeypatch: pytest.MonkeyPatch):
    """As long as it was renewed, nothing is asked; whoever did not renew it for a while is told what it has lost."""
    monkeypatch.setattr(StoredState, "_renew", lambda *_: None)
    one, other = StoredState(ADDRESS, memory), StoredState(ADDRESS, memory)
    with one.held():
        number = one._find().head.number
        one.verify()
        assert one._find().head.number == number
        time.sleep(stored_state.LEASE)
        one.verify()
        assert one._find().head.number != number
        with other.held(), pytest.raises(FileError, match=IN_USE):
            one.verify()


def test_what_another_one_has_taken_with_the_state_stays(memory: MemoryStore, monkeypatch: pytest.MonkeyPatch):
    """Also if that was saved by a head of which the first one got no answer before the state was taken."""
    monkeypatch.setattr(StoredState, "_renew", lambda *_: None)
    one, other, own = StoredState(ADDRESS, memory), StoredState(ADDRESS, memory), obstore.put

    def taken(*args: Any, **how: Any) -> Any:
        own(*args, **how)
        if args[1] == "head.json":
            monkeypatch.setattr(obstore, "put", own)
            other._writer = "other"
            other._claim()
            raise AlreadyExistsError("it is there")

    with one.held():
        put(one, "a", "one")
        monkeypatch.setattr(obstore, "put", taken)
        with pytest.raises(FileError, match=IN_USE):
            one.save()
    monkeypatch.setattr(stored_state, "LEASE", 0.0)
    with state_folder(ADDRESS) as folder:
        assert listed(folder) == {"a": "one"}


def test_only_objects_of_its_own_are_removed(memory: MemoryStore):
    """Of those that no head names: what else lies there is somebody's."""
    state = StoredState(ADDRESS, memory)
    left = [f"files/batches/{'0' * 32}-0.json", "files/batches/mine.json", f"lake/{'0' * 32}-0.json"]
    for path in left:
        obstore.put(memory, path, b"")
    with state.held():
        pass
    assert objects(memory) == set(left[1:])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"{", "head.json: expected the head of a state, got "),
        (b'{"format":2}', "head.json: expected a state in format 1, got one in format 2"),
        (b'{"files":{"../a":["files/a",1]}}', "head.json: expected paths in the state, got one that leads out of it"),
        (b'{"files":{"/a":["files/a",1]}}', "head.json: expected paths in the state, got one that leads out of it"),
        (b'{"files":{"a":["files/a",1]}}', "state/files/a: expected a file of the state, got none"),
    ],
)
def test_a_head_that_is_none_is_refused(memory: MemoryStore, text: bytes, said: str):
    """With the place and what came."""
    obstore.put(memory, "head.json", text)
    with pytest.raises(FileError) as caught, StoredState(ADDRESS, memory).held():
        pass
    assert str(caught.value).startswith(f"s3://bucket/{said}" if said.startswith("state/") else f"{ADDRESS}/{said}")


def test_rejects_that_are_read_again_are_found_in_every_working_copy(memory: MemoryStore):
    """Their log has addresses of files, and the folder is another one each time."""
    for number in range(2):
        state = StoredState(ADDRESS, memory)
        with state.held():
            own = file_uri(str(state.folder / "replay/a"))
            if number == 0:
                put(state, "checkpoint/sources/1/0", f'v1\n{{"path":"{own}"}}')
                state.save()
            assert (state.folder / "checkpoint/sources/1/0").read_text() == f'v1\n{{"path":"{own}"}}'


@pytest.mark.slow
def test_a_pipeline_goes_on_from_what_is_in_the_store(memory: MemoryStore, tmp_path: Path):
    """With other working copies each time: rows are written once, rejects stay and are read again once."""
    made = job(tmp_path)
    made.send(row(1), b"{")
    (report,) = made.run()
    assert report.counts["rejected"] == 1
    assert made.pipeline().rejects == f"{ADDRESS}/files/rejects"
    for id in (2, 3):
        made.send(row(id))
        assert [one.number for one in made.run()] == [id - 1]
    assert made.run() == []
    assert cdcavro("replay", "--state", ADDRESS).stdout == "the rejects of 1 batch will be read again\n"
    assert read_status(ADDRESS).waiting_rejects == 1
    (report,) = made.run()
    assert read_status(ADDRESS).waiting_rejects == 0
    assert (report.counts["read"], report.counts["rejected"]) == (1, 1)
    assert made.run() == []
    assert ids(made) == [[(1,), (2,), (3,)]] * 2


def test_the_error_that_ended_a_run_is_in_the_store_until_one_ends_well(memory: MemoryStore, tmp_path: Path):
    """Also where there is nothing left to read."""
    made = job(tmp_path)
    made.send(b"{")
    with pytest.raises(JobError):
        made.run(max_rejects=0)
    assert "brings the rejects to 1 of 1 messages" in (read_status(ADDRESS).failure or "")
    made.run()
    with state_folder(ADDRESS) as folder:
        assert not (folder / FAILURE).exists()


@pytest.mark.slow
@pytest.mark.parametrize("where", ["write", "commit"])
def test_a_batch_that_is_cut_off_has_the_same_messages_again(
    memory: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
):
    """Whatever has come since: it is in the lake, or may be. Its rejects are there once."""
    made = job(tmp_path, source={"files": str(tmp_path / "in")})
    made.send(row(0))
    made.run()
    made.send(row(1), b"{")
    owner: Any = NativeTables if where == "write" else Checkpoint
    own = getattr(owner, where)

    def cut(*args: Any) -> Any:
        own(*args)
        raise KeyboardInterrupt

    monkeypatch.setattr(owner, where, cut)
    with pytest.raises(KeyboardInterrupt):
        made.run()
    monkeypatch.setattr(owner, where, own)
    made.send(row(2), b"[")
    assert [(one.number, one.counts["read"]) for one in made.run()] == [(1, 2), (2, 2)]
    assert ids(made) == [[(0,), (1,), (2,)]] * 2
    with state_folder(ADDRESS, is_changed=True) as folder:
        found = {path: text for path, text in listed(folder / "rejects").items() if text is not None}
    assert {path: text.count("\n") for path, text in found.items()} == {
        "batch=1/part-00000.json": 1,
        "batch=2/part-00000.json": 1,
    }


@pytest.mark.slow
def test_commands_reach_a_state_in_a_store(memory: MemoryStore, tmp_path: Path):
    """Those that look at it, and those that change it."""
    made = job(tmp_path)
    made.send(row(1))
    page = tmp_path / "report.html"
    assert cdcavro("sync", "--config", str(made.config()), "--once", "--report", str(page)).exit_code == 0
    assert "d.t" in page.read_text()
    assert "cdcavro-state-" not in page.read_text()
    status = read_status(ADDRESS)
    assert (status.batch, status.is_running, [one.name for one in status.tables]) == (0, False, ["d.t"])
    state = StoredState(ADDRESS, memory)
    with state.held():
        assert read_status(ADDRESS).is_running
    shown = json.loads(cdcavro("sync", "show", "--state", ADDRESS, "--json").stdout)
    assert shown["counts"] == {"read": 1, "written": 1}
    assert cdcavro("sync", "pause", "d.t", "--state", ADDRESS).stdout == "paused: d.t\n"
    made.send(row(2))
    made.run()
    assert ids(made)[0] == [(1,)]
    assert cdcavro("sync", "resume", "d.t", "--state", ADDRESS).stdout == "paused: no table\n"
    made.run()
    assert ids(made)[0] == [(1,), (2,)]
    assert cdcavro("sync", "reset", "d.t", "--state", ADDRESS).exit_code == 0
    made.send(row(3))
    made.run()
    assert ids(made)[0] == [(3,)]
    assert cdcavro("maintain", "--config", str(made.config())).exit_code == 0


@pytest.mark.parametrize("action", ["status", "show", "pause d.t"])
def test_an_address_without_a_state_is_told(memory: MemoryStore, action: str):
    """As what was asked for, and not as the folder of a copy."""
    done = cdcavro("sync", *action.split(), "--state", ADDRESS)
    assert (done.exit_code, done.stderr) == (2, f"Error: {ADDRESS}: expected the state of a pipeline, got none\n")


@pytest.mark.slow
def test_a_bucket_that_is_not_there_is_told(s3: ObjectStore, tmp_path: Path):
    """By every command: of an object in it, a store says the same as of one that is not in a bucket."""
    address = "s3://nonesuch/state"
    made = job(tmp_path, address)
    made.send(row(1))
    run = f"--config {made.config()}"
    for action in (
        f"{run} --once",
        f"{run} --check",
        *(f"{name} --state {address}" for name in ("status", "pause d.t")),
    ):
        done = cdcavro("sync", *action.split())
        assert (done.exit_code, done.stderr) == (
            2,
            f"Error: {address}: expected a bucket or container that is there, got none\n",
        )
    done = cdcavro("sync", "status", "--state", f"s3://{BUCKET}/none")
    assert done.stderr == f"Error: s3://{BUCKET}/none: expected the state of a pipeline, got none\n"


@pytest.mark.slow
@pytest.mark.parametrize("schemes", [("s3a", "s3"), ("s3", "s3a")])
def test_lake_and_state_are_where_they_were_whatever_s3_is_called(
    s3: ObjectStore, tmp_path: Path, schemes: tuple[str, str]
):
    """As Hadoop calls it, or as everybody else does: `--check`, run, `status` and `maintain`."""
    place = f"{BUCKET}/called-{schemes[0]}"
    for number, scheme in enumerate(schemes):
        lake, state = f"{scheme}://{place}/lake", f"{scheme}://{place}/state"
        made = LocalJob(tmp_path, {"delta": lake, "changelog": True}, {"state": state}, files=number)
        made.send(row(number))
        config = f"--config {made.config()}"
        sync, maintain = f"-m cdcavro sync {config}", f"-m cdcavro maintain {config}"
        for command in (f"{sync} --check", f"{sync} --once", f"-m cdcavro sync status --state {state}", maintain):
            # The server is in this process, and deltalake lets no other thread of it run.
            done = subprocess.run([sys.executable, *command.split()], capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
        for suffix in ("", "~~changes"):
            read = f"D('{lake}/d/t{suffix}').to_pyarrow_table()['id'].to_pylist()"
            # One in some hundred readers is aborted as it ends, by a thread of deltalake's.
            code = f"import os; from deltalake import DeltaTable as D; print({read}, flush=True); os._exit(0)"
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
            assert sorted(json.loads(done.stdout or "[]")) == [*range(number + 1)], done.stderr


def test_what_is_wrong_with_a_place_is_told(memory: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Rejects that are elsewhere, and the package that is missing."""
    with pytest.raises(FileError, match="rejects go to where the state is"):
        job(tmp_path, rejects=str(tmp_path / "rejects")).pipeline()
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    with pytest.raises(SetupError, match=r"obstore is not installed: pip install 'cdcavro\[store\]'"):
        StoredState(ADDRESS)


@pytest.mark.slow
def test_a_pipeline_that_lost_its_state_writes_nothing_twice(
    memory: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """It stops between what it saved and its lake for longer than a lease; another run does its batch and the next one."""
    made, plain = job(tmp_path / "own"), job(tmp_path / "plain", str(tmp_path / "plain/state"))
    own = NativeTables.write
    for one in (made, plain):
        one.send(row(1))
        one.run()
        one.send(row(2), canal("UPDATE", [{"id": "1", "a": "2"}], id=3, old=[{"a": "1"}]))
        one.send(canal("UPDATE", [{"id": "1", "a": "3"}], id=4, old=[{"a": "2"}]))
    plain.run()

    def late(self: NativeTables, tables: Any) -> Any:
        monkeypatch.setattr(NativeTables, "write", own)
        assert [one.number for one in made.run()] == [1, 2]
        return own(self, tables)

    monkeypatch.setattr(StoredState, "_renew", lambda *_: None)
    monkeypatch.setattr(NativeTables, "write", late)
    with pytest.raises(FileError, match=IN_USE):
        made.run()
    assert made.rows("d.t", "id", "a") == plain.rows("d.t", "id", "a") == [(1, 3), (2, 1)]
    log = [one.rows("d.t", "id", "a", "_cdc_op", suffix="changes") for one in (made, plain)]
    assert log[0] == log[1] != []
    assert made.run() == []


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_what_is_killed_goes_on_from_the_store(s3: ObjectStore, tmp_path: Path):
    """At points of the batch and of what is saved, with another working copy in each life."""
    trial = LocalTrial(tmp_path / "killed", DELTA, "", 16, state=f"s3://{BUCKET}/killed")
    # Each life replaces objects, which another one left.
    trial.feed(2)
    assert trial.job().run()
    for point in KILLS:
        trial.feed(2)
        assert trial.kill(point), point
    assert trial.finish() == []


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("point", ["between deletes and merge", "during the merge", "behind an append's commit"])
def test_a_process_that_sleeps_until_another_has_its_state_changes_nothing(s3: ObjectStore, tmp_path: Path, point: str):
    """Neither in the store nor in the lake, to which the other has written that batch and the next one."""
    trial = LocalTrial(tmp_path / "asleep", DELTA, "", 16, state=f"s3://{BUCKET}/{tmp_path.name}")
    trial.feed(2)
    with trial.asleep(point):
        trial.feed(1)
        assert not trial.kill("nowhere")
        head = StoredState(trial.state)._find().head
    assert StoredState(trial.state)._find().head == head
    assert trial.finish() == []


KILLS = (
    "before the state is saved",
    "behind what is saved before a batch is written",
    "behind an append's commit",
    "before the end of a batch is saved",
    "while objects are written",
    "between objects and head",
    "between rejects and tables",
    "before old objects are removed",
)


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before a batch is written", "before its end is saved"])
def test_a_store_that_is_gone_ends_a_run_which_goes_on(
    s3: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
):
    """With a sentence that names it, and no secret; nothing is lost, and nothing is there twice."""
    made = job(tmp_path, f"s3://{BUCKET}/{len(when)}")
    made.send(row(1))
    made.run()
    made.send(row(2), b"{")
    monkeypatch.setattr(stored_state, "PATIENCE", stored_state.PATIENCE / 60)
    owner, name = (Checkpoint, "plan") if when == "before a batch is written" else (Checkpoint, "commit")
    own: Callable[..., Any] = getattr(owner, name)

    def gone(*args: Any) -> Any:
        s3.stop()
        return own(*args)

    monkeypatch.setattr(owner, name, gone)
    done = cdcavro("sync", "--config", str(made.config()), "--once", "--quiet")
    monkeypatch.setattr(owner, name, own)
    s3.start()
    assert done.exit_code == 2
    assert f"s3://{BUCKET}/{len(when)}: expected an object store that answers, got " in done.stderr
    assert "hidden-from-all" not in done.stderr
    assert ids(made)[0] == ([(1,)] if when == "before a batch is written" else [(1,), (2,)])
    (report,) = made.run()
    assert (report.number, report.counts["rejected"]) == (1, 1)
    assert ids(made) == [[(1,), (2,)]] * 2


CHILD = """
import sys
from cdcavro.cli import main
from cdcavro.sync.reading import stored_state
stored_state.LEASE = float(sys.argv.pop(1))
main(prog_name="cdcavro")
"""


@pytest.mark.slow
def test_a_second_process_is_refused_until_the_first_is_gone(s3: ObjectStore, tmp_path: Path):
    """Which is told apart: one that is killed renews its state no more."""
    made = job(tmp_path, f"s3://{BUCKET}/two")
    made.send(row(1))
    command = [sys.executable, "-c", CHILD, str(LEASE), "sync", "--config", str(made.config()), "--quiet"]
    with subprocess.Popen(command, start_new_session=True) as child:
        try:
            while not made.rows("d.t", "id"):
                assert child.poll() is None
                time.sleep(0.1)
            made.send(row(2))
            done = cdcavro("sync", "--config", str(made.config()), "--once", "--quiet")
            assert (done.exit_code, f"in use, by process {child.pid} on " in done.stderr) == (2, True), done.stderr
        finally:
            os.killpg(child.pid, signal.SIGKILL)
    made.run()
    assert ids(made) == [[(1,), (2,)]] * 2


@pytest.mark.parametrize("what", ["written", "removed"])
def test_a_copy_in_which_another_thread_works_is_saved_once_it_stays(
    memory: MemoryStore, monkeypatch: pytest.MonkeyPatch, what: str
):
    """Not as it is between two files that belong together; and once what there is was saved, nothing is written."""
    state = StoredState(ADDRESS, memory)
    own = StoredState._upload

    def meanwhile(self: StoredState, path: str) -> Any:
        if path == "b/1":
            monkeypatch.setattr(StoredState, "_upload", own)
            if what == "written":
                put(self, "a/1", "1")
            else:
                (self.folder / path).unlink()
        return own(self, path)

    with state.held():
        put(state, "a/0", "1")
        put(state, "b/1", "1")
        monkeypatch.setattr(StoredState, "_upload", meanwhile)
        state.save(is_idle=True)
        assert (state._find().head.files, objects(memory)) == ({}, set())
        put(state, "b/1", "1")
        state.save(is_idle=True)
        head = state._find().head
        assert [*head.files] == ["a/0", *(["a/1"] if what == "written" else []), "b/1"]
        monkeypatch.setattr(StoredState, "_put", lambda *_, **__: pytest.fail("a head is written"))
        state.save(is_idle=True)
        monkeypatch.undo()


def test_a_folder_that_is_removed_while_it_is_looked_at_is_left_out(
    memory: MemoryStore, monkeypatch: pytest.MonkeyPatch
):
    """As Spark removes what is old in a thread of its own."""
    state, own = StoredState(ADDRESS, memory), os.scandir

    def removed(path: Path) -> Any:
        if Path(path).name == "b":
            monkeypatch.setattr(os, "scandir", own)
            shutil.rmtree(path)
        return own(path)

    with state.held():
        put(state, "a/0", "1")
        put(state, "b/1", "1")
        monkeypatch.setattr(os, "scandir", removed)
        state.save(is_idle=True)
        head = state._find().head
        assert ([*head.files], head.folders) == (["a/0"], [])


def test_the_head_that_a_store_has_is_small(memory: MemoryStore, tmp_path: Path):
    """It is written with each renewal: it names files, and has none of their bytes."""
    made = job(tmp_path)
    made.send(*map(row, range(200)))
    made.run()
    text = bytes(obstore.get(memory, "head.json").bytes())
    assert len(text) < 4096
    assert Head().holder is None
