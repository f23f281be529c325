"""What a comparison of two schemas comes upon."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final, Literal

MAX_FINDINGS: Final = 1000

Kind = Literal["refused", "unsafe", "note"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing found.

    Attributes: `where` (str), the path under the writer's names; `reason` (str); `kind`: "refused"
    where there is no way to read, "unsafe" where data would be lost, misread, or not read by every
    reader, else "note"; `partial` (bool), whether only some data is concerned.
    """

    where: str
    reason: str
    kind: Kind
    partial: bool = False


class Findings:
    """All that was found, in the order in which it was met: at most 1,000 of a kind, then one that says so.

    Attributes: `all` (list); `choices` (int), in how many branches of unions the comparison is: what
    is refused there is so only where the branch occurs.
    """

    def __init__(self) -> None:
        self.all: list[Finding] = []
        self.choices = 0
        self._counts: Counter[Kind] = Counter()

    def add(self, where: str, reason: str, kind: Kind = "note", *, partial: bool = False) -> None:
        """Add one."""
        if self.choices and kind != "note":
            kind, partial = "unsafe", True
        self._counts[kind] += 1
        if self._counts[kind] <= MAX_FINDINGS:
            self.all.append(Finding(where, reason, kind, partial))
        elif self._counts[kind] == MAX_FINDINGS + 1:
            self.all.append(Finding("$", f"more than {MAX_FINDINGS:,} of the kind; the rest is not listed", kind))
