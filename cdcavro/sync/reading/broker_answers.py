"""Answers of Kafka's brokers: whether any is there, before what takes long is started, and without a client of Kafka's."""

from __future__ import annotations

import socket
import struct
import threading
import time
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final, NamedTuple

from cdcavro.errors import JobError, plain

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

# In seconds, for all brokers together.
PATIENCE: Final = 8.0
_PORT: Final = 9092
_PROTOCOL: Final = "kafka.security.protocol"
# What is spoken without TLS; a broker says its versions before anybody has said who asks, and what brokers there are
# only if nobody need say it.
_PLAIN: Final = "plaintext"
_PLAIN_LOGIN: Final = "sasl_plaintext"
# Questions: the versions that a broker speaks, and which brokers there are. Their second numbers are those of the question.
_VERSIONS: Final = struct.pack(">hhih", 18, 0, 1, -1)
_BROKERS: Final = struct.pack(">hhihi", 3, 1, 2, -1, 0)
# An answer begins with its length and the number of the question.
_ANSWER: Final = struct.Struct(">ii")
_LONGEST: Final = 1 << 20
# So many brokers of a cluster are asked; of more, nothing is said.
_ASKED: Final = 16


class _Reply(NamedTuple):
    """What comes of a broker: why it does not answer, None if it does; and where it says that brokers are, if not there."""

    fault: str | None
    brokers: tuple[str, ...] = ()


def check_brokers(servers: str, options: Mapping[str, str], patience: float = PATIENCE) -> None:
    """Check that one of some brokers answers, `host:port,...`, and one of those at which it says that the cluster is.

    Raises `JobError`, which says why each does not. Where the cluster is, is only known without TLS and a login.
    """
    stated = {name.lower(): value.lower() for name, value in options.items()}
    protocol, until = stated.get(_PROTOCOL, _PLAIN), time.monotonic() + patience
    places = [place.strip() for place in servers.split(",") if place.strip()]
    faults, reply = _first_answer(places, lambda place: _ask(place, protocol, until), until)
    if reply is None:
        raise JobError(f"Kafka at {servers} does not answer: {_listed(faults) or 'no server is named'}")
    if not reply.brokers:
        return
    # A second is left for them at least.
    until = max(until, time.monotonic() + 1)
    faults, found = _first_answer(reply.brokers, lambda place: _reach(place, until), until)
    if found is None:
        said = "answers, and none of its brokers does at the address that it names (advertised.listeners)"
        raise JobError(f"Kafka at {servers} {said}: {_listed(faults)}")


def _first_answer(
    places: Sequence[str], ask: Callable[[str], _Reply], until: float
) -> tuple[dict[str, str], _Reply | None]:
    """Return why places do not answer, and the first reply without a fault; None if there is none."""
    replies: SimpleQueue[tuple[str, _Reply]] = SimpleQueue()
    for place in places:
        # Nothing ends a look-up of a name that takes long.
        threading.Thread(target=lambda own=place: replies.put((own, ask(own))), daemon=True).start()
    faults = dict.fromkeys(places, _silence(until - time.monotonic()))
    for _ in places:
        try:
            place, reply = replies.get(timeout=max(0.0, until + 1 - time.monotonic()))
        except Empty:
            break
        if reply.fault is None:
            return faults, reply
        faults[place] = reply.fault
    return faults, None


def _ask(place: str, protocol: str, until: float) -> _Reply:
    """Ask a broker for its versions and for all brokers, as far as these are said without TLS and a login."""

    def talk(connection: socket.socket) -> _Reply:
        if protocol not in (_PLAIN, _PLAIN_LOGIN):
            return _Reply(None)
        if _answer(connection, _VERSIONS, 1) is None:
            return _Reply("what answers is no broker, or one that wants TLS")
        if protocol != _PLAIN:
            return _Reply(None)
        try:
            connection.settimeout(max(0.1, until - time.monotonic()))
            found = _brokers_in(_answer(connection, _BROKERS, 2) or b"")
        except OSError:
            found = ()
        return _Reply(None, () if _address(place) in map(_address, found) else found)

    return _reach(place, until, talk)


def _reach(place: str, until: float, talk: Callable[[socket.socket], _Reply] = lambda _: _Reply(None)) -> _Reply:
    """Return what comes of a connection to a place."""
    # Before the host of a listener may stand its protocol.
    host, port = _address(place)
    patience = max(0.1, until - time.monotonic())
    try:
        with socket.create_connection((host, port), timeout=patience) as connection:
            return talk(connection)
    except socket.gaierror:
        return _Reply(f"there is no host {plain(host)}")
    except TimeoutError:
        return _Reply(_silence(patience))
    except (OSError, ValueError, OverflowError) as error:
        return _Reply(getattr(error, "strerror", None) or str(error))


def _answer(connection: socket.socket, question: bytes, number: int) -> bytes | None:
    """Return what a broker answers to a question of this number; None if it is no such answer, or too long."""
    connection.sendall(struct.pack(">i", len(question)) + question)
    said = connection.makefile("rb")
    head = said.read(_ANSWER.size)
    if len(head) != _ANSWER.size:
        return None
    size, found = _ANSWER.unpack(head)
    if found != number or size > _LONGEST:
        return None
    # The number counts.
    return said.read(max(0, size - 4))


def _brokers_in(said: bytes) -> tuple[str, ...]:
    """Return where brokers are, as an answer to `_BROKERS` says; none if it does not say it, or has very many."""
    found = []
    try:
        (count,) = struct.unpack_from(">i", said)
        place = 4
        for _ in range(count if count <= _ASKED else 0):
            (size,) = struct.unpack_from(">4xh", said, place)
            place += 6 + size
            host = said[place - size : place].decode()
            port, size = struct.unpack_from(">ih", said, place)
            # A rack is a text, or null.
            place += 6 + max(size, 0)
            found.append(f"{host}:{port}")
    except (struct.error, UnicodeDecodeError):
        return ()
    return tuple(found)


def _listed(faults: Mapping[str, str]) -> str:
    return "; ".join(f"{plain(place)}: {fault}" for place, fault in faults.items())


def _silence(patience: float) -> str:
    return f"no answer within {round(patience, 1):g} s"


def _address(place: str) -> tuple[str, int]:
    place = place.rpartition("://")[2]
    host, colon, port = place.rpartition(":")
    if not colon or not port.isdecimal():
        return place.strip("[]"), _PORT
    return host.strip("[]"), int(port)
