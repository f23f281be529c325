"""The findings of a comparison of two schemas."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

Result = TypeVar("Result")

MAX_FINDINGS: Final = 1000

Kind = Literal["refused", "unsafe", "note"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding.

    Attributes: `where` (str), the path in the writer's names; `reason` (str); `kind` (str), "refused"
    if the data cannot be read, "unsafe" if data would be lost, misread or not read by every reader,
    else "note"; `partial` (bool), whether only some of the data is affected.
    """

    where: str
    reason: str
    kind: Kind
    partial: bool = False


class Findings:
    """All findings in the order in which they were made: at most 1,000 of a kind, then one that says so.

    Attributes: `all` (list of `Finding`); `choices` (int), the number of unions around the current
    place: what is refused within a branch affects only data that has the branch.
    """

    def __init__(self) -> None:
        self.all: list[Finding] = []
        self.choices = 0
        self._counts: Counter[Kind] = Counter()
        self._known: dict[Hashable, tuple[Any, str, list[Finding]]] = {}

    def add(self, where: str, reason: str, kind: Kind = "note", *, partial: bool = False) -> None:
        """Add a finding."""
        if self.choices and kind != "note":
            kind, partial = "unsafe", True
        self._put(Finding(where, reason, kind, partial))

    def repeat(self, made: list[Finding], old: str, new: str) -> None:
        """Add findings once more, at another place."""
        if all(self._counts[kind] > MAX_FINDINGS for kind in {finding.kind for finding in made}):
            return
        for finding in made:
            if finding.where.startswith(old):
                self._put(replace(finding, where=new + finding.where.removeprefix(old)))

    def once(self, key: Hashable, where: str, compare: Callable[[], Result]) -> Result:
        """Return what a comparison results in, made once for a key; what it found is found again at each place."""
        known = self._known.get(key)
        if known is None:
            start = len(self.all)
            result = compare()
            self._known[key] = result, where, self.all[start:]
            return result
        result, before, made = known
        self.repeat(made, before, where)
        return result

    def _put(self, finding: Finding) -> None:
        kind = finding.kind
        self._counts[kind] += 1
        if self._counts[kind] <= MAX_FINDINGS:
            self.all.append(finding)
        elif self._counts[kind] == MAX_FINDINGS + 1:
            self.all.append(Finding("$", f"more than {MAX_FINDINGS:,} of the kind; the rest is not listed", kind))
