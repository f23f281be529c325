"""Whether a broker answers: before what takes long is started, with its name, and without a client of Kafka's."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from cdcavro.errors import JobError
from cdcavro.sync.reading.broker_answers import check_brokers
from support.processes import free_ports


@contextmanager
def server(answer: Callable[[bytes], bytes | None]) -> Iterator[str]:
    """Listen, and answer the first question; None is no answer."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        kept: list[socket.socket] = []

        def serve() -> None:
            connection = listening.accept()[0]
            kept.append(connection)
            said = answer(connection.recv(100))
            if said is not None:
                connection.sendall(said)

        threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{listening.getsockname()[1]}"
        for connection in kept:
            connection.close()


def as_broker(question: bytes) -> bytes:
    """Answer as a broker does: with the number of the question."""
    size, kind, _, number = struct.unpack(">ihhi", question[:12])
    assert (size, kind) == (len(question) - 4, 18)
    return struct.pack(">iih", 6, number, 0)


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
