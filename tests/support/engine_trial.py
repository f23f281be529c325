"""The engine held against the exact way on mutated messages and damaged payloads.

    python tests/support/engine_trial.py 1000000 [SEED]

tries as many of each format, and says how many both ways took, how many only the exact way, and how many were refused.
What the engine takes has to be what the exact way gives, byte for byte, and neither may fail otherwise than by an error
of the project.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from cdcavro import CdcAvroError
from cdcavro.wire.formats import REGISTRY
from support.messages import goldens
from support.mutations import damaged, mutated

if TYPE_CHECKING:
    from collections.abc import Callable

BOTH, LEFT, REFUSED = "both ways", "only the exact way", "refused"


def trial(format: str, count: int, seed: int) -> Counter[str]:
    """Try mutated messages of a format, and the payloads of those that are taken; return what became of them."""
    random, messages = Random(f"{format} {seed}"), goldens(format)
    wire, outcomes = REGISTRY[format], Counter()
    for _ in range(count):
        message = mutated(random, random.choice(messages))
        payload, outcome = compared(wire._engine.encode, wire._encode_exact, message)
        outcomes[f"encode: {outcome}"] += 1
        if payload is not None:
            sent = payload if random.random() < 0.4 else damaged(random, payload)
            _, outcome = compared(wire._engine.decode, wire._reader.decode, sent)
            outcomes[f"decode: {outcome}"] += 1
    return outcomes


def compared(
    fast: Callable[[bytes], bytes | None], exact: Callable[[bytes], bytes], raw: bytes
) -> tuple[bytes | None, str]:
    """Return what the exact way gives, None for what it refuses, and which ways were gone."""
    given = fast(raw)
    try:
        expected = exact(raw)
    except CdcAvroError:
        expected = None
    assert given in (None, expected), f"{raw!r}: {given!r} instead of {expected!r}"
    return expected, REFUSED if expected is None else LEFT if given is None else BOTH


def main() -> None:
    """Run the trial by hand."""
    count, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    for format in REGISTRY:
        outcomes = trial(format, count, seed)
        print(format, *(f"{name} {times}" for name, times in sorted(outcomes.items())), sep=", ")  # noqa: T201


if __name__ == "__main__":
    main()
