"""How much work something is, told without a clock: it is the same however busy the machine is."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def calls(work: Callable[[], Any]) -> int:
    """Count the calls of functions, Python's and C's, that some work makes; those inside compiled modules do not count."""
    count = 0

    def counted(_frame: Any, event: str, _what: Any) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count
