"""Whether a broker answers: before what takes long is started, with its name, and without a client of Kafka's."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

import pytest

from cdcavro.errors import JobError
from cdcavro.sync.reading.brokers import check_brokers
from support.kafka_server import NOWHERE, Broker
from support.processes import free_ports


@contextmanager
def server(answer: Callable[[bytes], bytes | None]) -> Iterator[str]:
    """Listen, and answer questions; None is no answer."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        kept: list[socket.socket] = []

        def serve() -> None:
            # The sockets are closed when the test ends, also while this waits for a question.
            with suppress(OSError):
                connection = listening.accept()[0]
                kept.append(connection)
                while question := connection.recv(100):
                    said = answer(question)
                    if said is not None:
                        connection.sendall(said)

        threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{listening.getsockname()[1]}"
        for connection in kept:
            connection.close()


def as_broker(question: bytes, brokers: bytes = b"\0\0\0\0") -> bytes:
    """Answer as a broker does: with the number of the question, and with what there is of brokers."""
    size, kind, _, number = struct.unpack(">ihhi", question[:12])
    assert size == len(question) - 4
    said = {18: b"\0\0", 3: brokers}[kind]
    return struct.pack(">ii", 4 + len(said), number) + said


def test_one_that_answers_is_enough():
    """The others may be away."""
    with server(as_broker) as place:
        check_brokers(f"127.0.0.1:{free_ports(1)[0]}, PLAINTEXT://{place}", {})


def test_a_port_of_tls_is_only_reached():
    """What is asked there is not known before there is a key."""
    with server(lambda _: None) as place:
        check_brokers(place, {"kafka.security.protocol": "SASL_SSL"})


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        pytest.param(lambda _: b"HTTP/1.1 400 Bad Request\r\n", "what answers is no broker", id="another server"),
        pytest.param(lambda _: b"", "no answer within 0.2 s", id="silence"),
    ],
)
def test_what_is_no_broker_is_told(answer: Callable[[bytes], bytes | None], said: str):
    """With its name, and soon."""
    with server(answer) as place, pytest.raises(JobError) as caught:
        check_brokers(place, {"kafka.security.protocol": "sasl_plaintext"}, patience=0.2)
    assert str(caught.value).startswith(f"Kafka at {place} does not answer: {place}: {said}")


def test_each_server_has_its_reason():
    """A name that is none's, and a port on which nothing listens."""
    closed = f"127.0.0.1:{free_ports(1)[0]}"
    with pytest.raises(JobError) as caught:
        check_brokers(f"there.is.none.invalid:9092,{closed}", {})
    assert "there.is.none.invalid:9092: there is no host there.is.none.invalid; " in str(caught.value)
    assert f"{closed}: Connection refused" in str(caught.value)


@pytest.mark.jvm
def test_a_cluster_that_names_addresses_at_which_it_is_not_is_told(kafka: Broker):
    """A broker answers, and sends its clients to where none of them finds one; a client would go on asking there."""
    check_brokers(kafka.servers, {})
    with pytest.raises(JobError) as caught:
        check_brokers(kafka.lost, {})
    port = kafka.lost.rpartition(":")[2]
    assert str(caught.value) == (
        f"Kafka at {kafka.lost} answers, and none of its brokers does at the address that it names"
        f" (advertised.listeners): {NOWHERE}:{port}: there is no host {NOWHERE}"
    )


def listed(*places: tuple[bytes, int], count: int | None = None) -> bytes:
    """Return the beginning of what a broker says of the cluster."""
    brokers = b"".join(struct.pack(">ih", 7, len(host)) + host + struct.pack(">ih", port, -1) for host, port in places)
    return struct.pack(">i", len(places) if count is None else count) + brokers


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(listed((b"127.0.0.1", 1), count=2), id="fewer than it says"),
        pytest.param(listed((b"127.0.0.1", 1), count=-1), id="less than none"),
        pytest.param(listed((b"127.0.0.1", 1), count=1 << 30), id="a count that lies"),
        pytest.param(struct.pack(">iih", 1, 7, 1 << 14) + b"short", id="a length that lies"),
        pytest.param(listed((b"\xff", 1)), id="no text"),
        pytest.param(listed(*[(b"127.0.0.1", 1)] * 17), id="more than are asked"),
        pytest.param(listed(), id="none"),
        pytest.param(b"", id="nothing"),
    ],
)
def test_a_list_of_brokers_that_is_not_understood_stops_nothing(said: bytes):
    """The client of Kafka asks again."""
    with server(partial(as_broker, brokers=said)) as place:
        check_brokers(place, {})


def test_one_of_the_brokers_that_a_cluster_names_is_enough():
    """Others may be away; each of them is told where none is there."""
    closed = free_ports(1)[0]
    with server(as_broker) as other:
        host, _, port = other.rpartition(":")
        with server(partial(as_broker, brokers=listed((b"127.0.0.1", closed), (host.encode(), int(port))))) as place:
            check_brokers(place, {})
    with server(partial(as_broker, brokers=listed((b"127.0.0.1", closed)))) as place:
        check_brokers(place, {"kafka.security.protocol": "SASL_PLAINTEXT"})
    with (
        server(partial(as_broker, brokers=listed((b"127.0.0.1", closed)))) as place,
        pytest.raises(JobError, match=f"{place} answers, and none of its .*: 127.0.0.1:{closed}: Connection refused"),
    ):
        check_brokers(place, {})


@pytest.mark.slow
def test_a_look_up_that_takes_long_is_not_waited_for(monkeypatch: pytest.MonkeyPatch):
    """Nothing ends it, so it goes on in a thread of its own."""
    is_over = threading.Event()

    def look_up(*_: object, **__: object) -> None:
        is_over.wait()
        raise socket.gaierror

    monkeypatch.setattr(socket, "create_connection", look_up)
    with pytest.raises(JobError, match=r"slow:1: no answer within 0[.]1 s"):
        check_brokers("slow:1", {}, patience=0.1)
    is_over.set()
