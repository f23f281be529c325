"""The engine held against the exact way on mutated messages and damaged payloads.

    python tests/support/engine_trial.py 1000000 [SEED]

tries as many of each format, and says how many both ways took, how many only the exact way, and how many were refused:
of messages, of their payloads (of which most are damaged), and of records, written and read. What the engine takes has
to be what the exact way gives, byte for byte, and every value what an independent parser sees; what is refused has to be
refused with the same sentence, engine or not; and nothing may fail otherwise than by an error of the project.
"""

from __future__ import annotations

import sys
from collections import Counter
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from cdcavro import CdcAvroError, MessageError
from cdcavro.wire.formats import REGISTRY
from cdcavro.wire.value_readers import PayloadDecoder
from support.messages import goldens
from support.mutations import damaged, mutated
from support.roundtrip import exact as parsed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cdcavro.wire import Format

BOTH, LEFT, REFUSED = "both ways", "only the exact way", "refused"


def trial(format: str, count: int, seed: int) -> Counter[str]:
    """Try mutated messages of a format, and the payloads of those that are taken, also damaged; return what became of them."""
    random, messages = Random(f"{format} {seed}"), goldens(format)
    wire, outcomes = REGISTRY[format], Counter()
    for _ in range(count):
        message = mutated(random, random.choice(messages))
        payload, outcome = compared(wire._engine.encode, wire._encode_exact, message)
        assert said(wire.encode, message) == said(named(wire, wire._encode_exact), message)
        # By a parser that is none of ours, and keeps numbers as texts.
        assert payload is None or parsed(wire.decode(payload)) == parsed(message)
        outcomes[f"encode: {outcome}"] += 1
        for sent in () if payload is None else (payload, damaged(random, payload), damaged(random, payload)):
            _, outcome = compared(wire._engine.decode, wire._reader.decode, sent)
            assert said(wire.decode, sent) == said(named(wire, wire._reader.decode), sent)
            outcomes[f"decode: {outcome}"] += 1
            for name, outcome in _records(wire, message, sent):
                outcomes[f"{name}: {outcome}"] += 1
    return outcomes


def _records(wire: Format, message: bytes, sent: bytes) -> Iterator[tuple[str, str]]:
    """Write the record of a message, and read one from a payload."""
    yield "write", compared(wire.values.write, wire._writer.write, wire.parse(message))[1]
    assert said(wire.read, sent) == said(named(wire, partial(read_exact, wire)), sent)
    yield "read", compared(partial(_read_fast, wire), lambda raw: repr(read_exact(wire, raw)), sent)[1]


def _read_fast(wire: Format, raw: bytes) -> str | None:
    found = wire.values.read(raw)
    return None if found is None or found[1] != len(raw) else repr(found[0])


def read_exact(wire: Format, raw: bytes) -> Any:
    """Read a payload the exact way."""
    source = PayloadDecoder(raw)
    record = wire._reader.read(source)
    source.finish()
    return record


def named(wire: Format, way: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function whose errors name the format, as those of its own functions do."""

    def named(given: Any) -> Any:
        try:
            return way(given)
        except MessageError as error:
            error.format = wire.name
            raise

    return named


def said(way: Callable[[Any], Any], given: Any) -> str:
    """Return what a function gives as text, or the kind of its error and the sentence."""
    try:
        return repr(way(given))
    except CdcAvroError as error:
        return f"{type(error).__name__}: {error}"


def compared(fast: Callable[[Any], Any], exact: Callable[[Any], Any], given: Any) -> tuple[Any, str]:
    """Return what the exact way gives, None for what it refuses, and which ways were gone."""
    taken = fast(given)
    try:
        expected = exact(given)
    except CdcAvroError:
        expected = None
    assert taken in (None, expected), f"{given!r}: {taken!r} instead of {expected!r}"
    return expected, REFUSED if expected is None else LEFT if taken is None else BOTH


def main() -> None:
    """Run the trial by hand."""
    count, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    for format in REGISTRY:
        outcomes = trial(format, count, seed)
        print(format, *(f"{name} {times}" for name, times in sorted(outcomes.items())), sep=", ")  # noqa: T201


if __name__ == "__main__":
    main()
