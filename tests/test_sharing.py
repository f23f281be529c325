"""What threads and processes may share: the same results as alone, or an error, and no child that hangs."""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from cdcavro import encode, registry, to_changes
from cdcavro.errors import CdcAvroError
from cdcavro.exact.caching import WeightedCache
from cdcavro.table.tables import Tables
from cdcavro.table.writing.message_typer import MessageTyper
from cdcavro.wire.formats import FORMATS, get_format
from support import stream_trial
from support.generated_modules import module, root
from support.messages import goldens, shop_canal
from support.wire import field, record

if TYPE_CHECKING:
    from collections.abc import Callable

THREADS = 8


@pytest.fixture(autouse=True)
def _switching():
    """Let threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def at_once(work: Callable[[int], Any]) -> list[Any]:
    """Return what eight threads return that begin at once."""
    gate = threading.Barrier(THREADS)

    def begin(number: int) -> Any:
        gate.wait()
        return work(number)

    with ThreadPoolExecutor(THREADS) as threads:
        return list(threads.map(begin, range(THREADS)))


@pytest.mark.slow
def test_a_format_may_be_shared():
    """Threads encode, decode and read changes at once, each as if it were alone."""
    messages = [(name, message) for name in FORMATS for message in goldens(name)[:4]]

    def work(_: int) -> list[Any]:
        return [
            (payload := encode(message, name), get_format(name).decode(payload), to_changes(message, name))
            for name, message in messages
        ]

    alone = work(0)
    assert all(made == alone for made in at_once(work))


def test_a_registry_may_be_shared(tmp_path):
    """Threads publish, fetch and open at once, and ids are given once."""
    shared = registry.connect(f"file:{tmp_path / 'schemas'}")

    def work(number: int) -> list[Any]:
        own = [shared.publish(f'{{"type":"fixed","name":"f{i}","size":{i}}}', f"s{i}").id for i in range(5)]
        shared.publish('"int"', f"own{number}")
        return [
            (shared.fetch(id=id).schema.json, shared.open(registry.frame(b"x" * i, id))[1]) for i, id in enumerate(own)
        ]

    first, *others = at_once(work)
    assert all(other == first for other in others)
    assert [shared.versions(f"s{i}") for i in range(5)] == [[1]] * 5


@pytest.mark.slow
def test_a_record_class_may_be_shared():
    """Threads that are the first to use a class write and read as if they were alone."""
    made: Any = None

    def work(number: int) -> bool:
        rows = [made(a=number, b=str(i)) for i in range(5)]
        return all(made.from_avro(row.to_avro()) == made.from_json(row.to_json()) == row for row in rows)

    often = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(60):
            made = root(module(record(field("a", "long"), field("b", "string"))))
            assert at_once(work) == [True] * THREADS
    finally:
        sys.setswitchinterval(often)


@pytest.mark.slow
def test_tables_are_used_by_one_thread_at_a_time():
    """Any other gets an error that is none of a message's, and the tables are as if it had not come."""
    tables, messages = Tables(), [stream_trial.KINDS["columns"](i) for i in range(60)]
    changes = [change for message in messages for change in to_changes(message, "canal")]
    place = iter(changes)
    lock = threading.Lock()
    refused = []

    def work(_: int) -> None:
        while True:
            with lock:
                change = next(place, None)
            if change is None:
                return
            while True:
                try:
                    tables.add(change)
                    break
                except RuntimeError as error:
                    refused.append(str(error))
                    time.sleep(0)

    at_once(work)
    assert set(refused) == {"one thread at a time may use Tables, and another does"}
    assert sorted(len(table.versions) for table in tables.tables) == [1] * 60


@pytest.mark.slow
def test_a_typer_shared_by_threads_gives_right_rows_or_an_error():
    """Never rows of a pattern that another thread was about to learn."""
    tables = Tables()
    typer = MessageTyper("canal", tables)
    messages = [message for message in shop_canal() if b'"isDdl":false' in message][:12]
    expected = {}
    for message in messages:
        expected[message] = [one.payload for one in typer.add(message)]
    typer = MessageTyper("canal", tables)

    def work(number: int) -> int:
        right = 0
        for message in [*messages[number:], *messages[:number]] * 3:
            try:
                assert [one.payload for one in typer.add(message)] == expected[message]
                right += 1
            except RuntimeError:
                continue
        return right

    assert sum(at_once(work)) > 0


@pytest.mark.slow
def test_a_child_that_is_forked_while_threads_work_does_not_hang(tmp_path):
    """Locks are free in the child, whoever held them, and what was only remembered is remembered again."""
    cache, shared = WeightedCache(50), registry.connect(f"file:{tmp_path / 'schemas'}")
    made = shared.publish('"int"', "s")
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with cache._lock, shared._cache._lock:
            held.set()
            done.wait()

    def busy() -> None:
        while not done.is_set():
            encode(goldens("canal")[0], "canal")

    def use() -> None:
        cache.put("x", 1, 1)
        encode(goldens("canal")[0], "canal")
        shared.fetch(id=made.id)
        Tables().add(to_changes(stream_trial.KINDS["tables"](1), "canal")[0])

    use()  # what is made at the first use is not made in each child
    shared._cache._values.clear()
    threads = [threading.Thread(target=work, daemon=True) for work in (hold, busy, busy)]
    for thread in threads:
        thread.start()
    held.wait()
    try:
        for _ in range(4):
            child = os.fork()
            if child == 0:
                signal.alarm(20)
                try:
                    use()
                    os._exit(0)
                finally:
                    os._exit(1)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        done.set()
        for thread in threads:
            thread.join()


class _Schemas(BaseHTTPRequestHandler):
    """A registry's server with a schema for each id, which notes from where it was asked for it."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1
    asked: ClassVar[dict[int, int]] = {}

    def do_GET(self) -> None:
        number = int(self.path.partition("/ids/")[2].partition("/")[0].partition("?")[0])
        body: Any = [] if self.path.endswith(("/versions", "/subjects")) else {"schema": _sized(number)}
        self.asked[number] = self.client_address[1]
        text = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


def _sized(number: int) -> str:
    return f'{{"type":"fixed","name":"f","size":{number}}}'


@pytest.mark.slow
def test_a_forked_child_asks_a_registry_by_connections_of_its_own():
    """It inherits an open one, on which it would read what its parent asked for: both ask at once and get their answers."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Schemas)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    shared = registry.connect(f"http://127.0.0.1:{server.server_port}")

    def are_right(ids: range) -> bool:
        return all(shared.fetch(id=number).schema.json == _sized(number) for number in ids)

    try:
        assert are_right(range(1, 3))
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            try:
                os._exit(0 if are_right(range(100, 120)) else 2)
            finally:
                os._exit(1)
        assert are_right(range(3, 23))
        assert os.waitpid(child, 0)[1] == 0
        assert are_right(range(23, 25))
    finally:
        shared.close()
        server.shutdown()
        server.server_close()
    own, other = ({_Schemas.asked[number] for number in ids} for ids in (range(1, 25), range(100, 120)))
    assert (len(own), len(other), own & other) == (1, 1, set())


@pytest.mark.parametrize("way", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
def test_tables_go_on_in_another_process(way):
    """Pickled, by a process that is forked or spawned: what they learned goes with them, and nothing that is held."""
    tables = Tables()
    for i in range(101):
        for change in to_changes(stream_trial.KINDS["columns"](i), "canal"):
            tables.add(change)
    sent = pickle.loads(pickle.dumps(tables))
    with multiprocessing.get_context(way).Pool(1) as pool:
        there = pool.apply_async(stream_trial.added, (sent,)).get(60)
    assert there == stream_trial.added(tables)
    assert [table.versions for table in sent.tables][1:] == [table.versions for table in tables.tables][1:]


class Text(str):
    """A text that says something else of itself."""

    __slots__ = ()

    def encode(self, *_: object) -> bytes:
        """Return other bytes."""
        return b"{}"


class Octets(bytes):
    """Bytes that say something else of themselves."""

    __slots__ = ()

    def __len__(self) -> int:
        return 1 << 40


@pytest.mark.parametrize("kind", [Text, str, Octets, bytes, bytearray, memoryview])
@pytest.mark.parametrize("format", ["canal", "oms_default"])
def test_arguments_of_other_types_are_taken_as_what_they_are_or_refused(format, kind):
    """Alike in both builds: a text or bytes as they stand, whatever their class says, or a `TypeError`."""
    message = goldens(format)[0]
    payload = encode(message, format)
    sent = kind(message.decode()) if issubclass(kind, str) else kind(message)
    try:
        assert encode(sent, format) == payload
    except TypeError:
        assert kind in (bytearray, memoryview)
    try:
        assert repr(to_changes(sent, format)) == repr(to_changes(message, format))
        if not issubclass(kind, str):
            assert get_format(format).decode(kind(payload)) == get_format(format).decode(payload)
    except TypeError:
        assert kind in (bytearray, memoryview)


def test_a_bytearray_that_is_changed_meanwhile_does_no_harm():
    """It is refused, or read as it was at some moment; the process lives."""
    message = bytearray(goldens("canal")[0])
    done = threading.Event()

    def change() -> None:
        while not done.is_set():
            message[len(message) // 2] ^= 1
            with suppress(BufferError):  # while it is being read, its length stays
                del message[-1:]
                message.extend(b"}")

    thread = threading.Thread(target=change, daemon=True)
    thread.start()
    try:
        for _ in range(300):
            for call in (encode, to_changes, get_format("canal").decode):
                try:
                    call(message, *([] if call not in (encode, to_changes) else ["canal"]))
                except (CdcAvroError, TypeError, BufferError):
                    continue
    finally:
        done.set()
        thread.join()


_NAMES_AT_ONCE = """
import threading, cdcavro
names = ["Change", "decode", "to_changes", "parse_schema", "sniff", "Tables", "transcode", "from_changes"]
ready, errors = threading.Barrier(len(names)), []
def take(name):
    ready.wait()
    try:
        getattr(cdcavro, name)
    except BaseException as error:
        errors.append(repr(error))
threads = [threading.Thread(target=take, args=(name,)) for name in names]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(errors, cdcavro.wire.formats.__name__, cdcavro.exact.numbers.__name__)
"""


@pytest.mark.slow
def test_names_of_the_package_may_be_taken_first_by_several_threads():
    """They are imported when they are first needed, and so are modules; several that are half imported would be errors."""
    for _ in range(5):
        command = [sys.executable, "-c", _NAMES_AT_ONCE]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.stdout == "[] cdcavro.wire.formats cdcavro.exact.numbers\n", done.stderr
