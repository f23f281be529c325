"""Kafka's brokers: whether any is there, and how they are reached, without a client of Kafka's.

They are asked before what takes long is started. Options of Spark's source of Kafka become those of librdkafka, and
patterns of topics Python's instead of Java's.
"""

from __future__ import annotations

import re
import socket
import struct
import threading
import time
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final, NamedTuple

from cdcavro.errors import JobError, plain

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Options = dict[str, str]

_PREFIX: Final = "kafka."
_JAAS: Final = "sasl.jaas.config"
# What Java's client and librdkafka name differently.
_NAMES: Final = {
    "sasl.mechanism": "sasl.mechanisms",
    "request.timeout.ms": "socket.timeout.ms",
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
}
# What has no effect on messages, or is about groups, which are not used.
_IDLE: Final = frozenset(
    {
        "allow.auto.create.topics",
        "auto.commit.interval.ms",
        "client.dns.lookup",
        "default.api.timeout.ms",
        "exclude.internal.topics",
        "group.instance.id",
        "heartbeat.interval.ms",
        "max.poll.interval.ms",
        "max.poll.records",
        "metric.reporters",
        "metrics.num.samples",
        "metrics.recording.level",
        "metrics.sample.window.ms",
        "partition.assignment.strategy",
        "security.providers",
        "session.timeout.ms",
        "ssl.enabled.protocols",
        "ssl.keymanager.algorithm",
        "ssl.protocol",
        "ssl.provider",
        "ssl.secure.random.implementation",
        "ssl.trustmanager.algorithm",
    }
)
# Settings of Spark itself that have no effect on messages.
_OF_SPARK: Final = frozenset(
    {"fetchoffset.numretries", "fetchoffset.retryintervalms", "kafkaconsumer.polltimeoutms", "groupidprefix"}
)
# What a pipeline decides, or Spark refuses as well.
_REFUSED: Final = frozenset(
    {"auto.offset.reset", "bootstrap.servers", "enable.auto.commit", "interceptor.classes", "key.deserializer"}
    | {"value.deserializer"}
)
_MODULE: Final = re.compile(
    r"\s*(?:\w+\.)*(\w+)\s+\w+((?:\s+[\w.]+\s*=\s*(?:\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|[^\s;]+))*)\s*;\s*"
)
_FIELD: Final = re.compile(r"([\w.]+)\s*=\s*(?:\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)'|([^\s;]+))")
_LOGINS: Final = ("PlainLoginModule", "ScramLoginModule")
_SECRETS: Final = ("password", "jaas", "pem", "secret", "token", ".key")
_STORES: Final = ("ssl.truststore.", "ssl.keystore.")


def client_options(options: Mapping[str, str]) -> Options:
    """Return the options of librdkafka that mean what those of Spark's source of Kafka do.

    Raises `JobError`, without values, for what only Java's client can do, or what the local runner does not know.
    """
    made: Options = {}
    own = {name[len(_PREFIX) :]: value for name, value in _lower(options) if name.startswith(_PREFIX)}
    known = {*_OF_SPARK, "startingoffsets", "maxoffsetspertrigger"}
    others = sorted(name for name in options if not name.lower().startswith(_PREFIX) and name.lower() not in known)
    if others:
        raise JobError(f"the options {', '.join(map(plain, others))} of Spark's source of Kafka need Spark")
    _translate_stores(own, made)
    for name, value in own.items():
        if name in _REFUSED:
            raise JobError(f"the option {_PREFIX}{name} cannot be set")
        if name == _JAAS:
            made |= _login(value)
        elif name == "ssl.endpoint.identification.algorithm":
            made[name] = value or "none"
        elif name.endswith((".class", ".classes", ".handler")):
            raise JobError(f"the option {_PREFIX}{name} names a class of Java, and needs Spark")
        elif name not in _IDLE:
            made[_NAMES.get(name, name)] = value
    return made


def secrets_in(options: Mapping[str, str]) -> list[str]:
    """Return the values of options that nobody may see, the longest first."""
    found = {value for name, value in options.items() if value and any(word in name.lower() for word in _SECRETS)}
    return sorted(found, key=len, reverse=True)


def _lower(options: Mapping[str, str]) -> list[tuple[str, str]]:
    # Spark's options have no case, but hold their names; Kafka's are all in small letters.
    return [(name.lower(), str(value)) for name, value in options.items()]


def _translate_stores(own: Options, made: Options) -> None:
    """Move the options of stores of keys and certificates: those in PEM, and keys in PKCS#12. Raises `JobError`."""
    for store in _STORES:
        type = own.pop(f"{store}type", "JKS").upper()
        place, password = own.pop(f"{store}location", None), own.pop(f"{store}password", None)
        if place is None:
            continue
        if not Path(place).is_file():
            raise JobError(f"the file of the option {_PREFIX}{store}location is not there: {place}")
        if type == "PEM":
            names = ("ssl.ca",) if "trust" in store else ("ssl.certificate", "ssl.key")
            made |= {f"{name}.location": place for name in names}
        elif type == "PKCS12" and "key" in store:
            made |= {"ssl.keystore.location": place, "ssl.keystore.password": password or ""}
        else:
            wanted = "PEM" if "trust" in store else "PEM or PKCS12"
            raise JobError(
                f"the option {_PREFIX}{store}location is a store of type {plain(type)}, which needs Java: "
                f"convert it to PEM, and set {_PREFIX}{store}type to {wanted}"
            )


def _login(text: str) -> Options:
    """Return the user and the password of a login as Java's client has it. Raises `JobError` for other logins."""
    found = _MODULE.fullmatch(text)
    if found is None:
        raise JobError(f"the option {_PREFIX}{_JAAS} is not a login as Java's client reads it")
    if found[1] not in _LOGINS:
        raise JobError(f"the login {found[1]} of the option {_PREFIX}{_JAAS} needs Spark: here are those by password")
    fields = {one[1]: re.sub(r"\\(.)", r"\1", one[2] or one[3] or one[4] or "") for one in _FIELD.finditer(found[2])}
    if not {"username", "password"} <= fields.keys():
        raise JobError(f"the option {_PREFIX}{_JAAS} has no username and password")
    return {"sasl.username": fields["username"], "sasl.password": fields["password"]}


# What stands in Java's patterns and means nothing, or something else, in Python's.
_JAVA_ONLY: Final = re.compile(r"\\[pPhHRXGcxuN0eZzVv]|\(\?[a-zA-Z-]+[:)]|\(\?P|\(\?\(|\(\?#|&&")
_TOKEN: Final = re.compile(r"\\Q.*?(?:\\E|$)|\\k<\w+>|\(\?<(?=\w)|\(\?[a-zA-Z-]+[:)]|\(\?[P(#]|&&|\\.|.", re.DOTALL)


def topic_pattern(pattern: str) -> Callable[[str], bool]:
    r"""Return what tells whether the name of a topic matches a pattern of Java's as a whole.

    Names of topics are letters, digits, `.`, `_` and `-` of ASCII, for which most patterns mean the same in both
    languages. Raises `JobError` for those that need not: with `\p{..}` and the like, classes within classes, `&&`, and
    flags that are not at the start.

    >>> [name for name in ("shop.orders", "shops") if topic_pattern(r"\Qshop.\E(?<table>\w+)")(name)]
    ['shop.orders']
    """
    made, is_in_class = "", False
    for found in _TOKEN.finditer(pattern):
        piece = found[0]
        is_start = found.start() == 0 and re.fullmatch(r"\(\?[ims]+\)", piece)
        if (_JAVA_ONLY.fullmatch(piece) and not is_start) or (piece == "[" and is_in_class):
            raise JobError(
                f"the pattern of topics {plain(pattern)} has {plain(piece)}, which Python reads differently from Java: "
                "write it another way, or name the topics"
            )
        if piece.startswith("\\Q"):
            piece = re.escape(piece[2:].removesuffix("\\E"))
        elif piece.startswith("\\k"):
            piece = f"(?P={piece[3:-1]})"
        elif piece == "(?<":
            piece = "(?P<"
        is_in_class = (is_in_class or piece == "[") and piece != "]"
        made += piece
    try:
        matcher = re.compile(made, re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:
        raise JobError(f"the topic pattern {plain(pattern)} is invalid: {error}") from error
    return lambda name: matcher.fullmatch(name) is not None


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
