"""Answers of Kafka's brokers: whether any is there, before what takes long is started, and without a client of Kafka's."""

from __future__ import annotations

import socket
import struct
import threading
import time
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final

from cdcavro.errors import JobError, plain

if TYPE_CHECKING:
    from collections.abc import Mapping

# In seconds, for all brokers together.
PATIENCE: Final = 8.0
_PORT: Final = 9092
_PROTOCOL: Final = "kafka.security.protocol"
# What is spoken without TLS; a broker answers this question before anybody has said who asks.
_PLAIN: Final = ("plaintext", "sasl_plaintext")
_VERSIONS: Final = struct.pack(">hhih", 18, 0, 1, -1)
# An answer begins with its length and the number of the question.
_ANSWER: Final = struct.Struct(">ii")


def check_brokers(servers: str, options: Mapping[str, str], patience: float = PATIENCE) -> None:
    """Check that one of some brokers answers, `host:port,...`. Raises `JobError`, which says why each does not."""
    stated = {name.lower(): value.lower() for name, value in options.items()}
    is_plain = stated.get(_PROTOCOL, _PLAIN[0]) in _PLAIN
    places = [place.strip() for place in servers.split(",") if place.strip()]
    answers: SimpleQueue[tuple[str, str | None]] = SimpleQueue()
    until = time.monotonic() + patience

    def ask(place: str) -> None:
        answers.put((place, _fault(place, is_plain=is_plain, patience=patience)))

    for place in places:
        # Nothing ends a look-up of a name that takes long.
        threading.Thread(target=ask, args=(place,), daemon=True).start()
    faults = dict.fromkeys(places, f"no answer within {patience:g} s")
    for _ in places:
        try:
            place, fault = answers.get(timeout=max(0.0, until + 1 - time.monotonic()))
        except Empty:
            break
        if fault is None:
            return
        faults[place] = fault
    said = "; ".join(f"{plain(place)}: {fault}" for place, fault in faults.items())
    raise JobError(f"Kafka at {servers} does not answer: {said or 'no server is named'}")


def _fault(place: str, *, is_plain: bool, patience: float) -> str | None:
    """Return why a broker does not answer; None if it does."""
    # Before the host of a listener may stand its protocol.
    host, port = _address(place.rpartition("://")[2])
    try:
        with socket.create_connection((host, port), timeout=patience) as connection:
            if not is_plain:
                return None
            connection.settimeout(patience)
            connection.sendall(struct.pack(">i", len(_VERSIONS)) + _VERSIONS)
            said = connection.makefile("rb").read(_ANSWER.size)
            is_answer = len(said) == _ANSWER.size and _ANSWER.unpack(said)[1] == 1
            return None if is_answer else "what answers is no broker, or one that wants TLS"
    except socket.gaierror:
        return f"there is no host {plain(host)}"
    except TimeoutError:
        return f"no answer within {patience:g} s"
    except (OSError, ValueError, OverflowError) as error:
        return getattr(error, "strerror", None) or str(error)


def _address(place: str) -> tuple[str, int]:
    host, colon, port = place.rpartition(":")
    if not colon or not port.isdecimal():
        return place.strip("[]"), _PORT
    return host.strip("[]"), int(port)
