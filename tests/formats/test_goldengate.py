"""The facts of `goldengate`: Oracle GoldenGate's JSON, operation model."""

from __future__ import annotations

import pytest

from support.roundtrip import assert_golden, golden_cases


@pytest.mark.parametrize("golden", golden_cases("goldengate"))
def test_golden_message_round_trips_and_is_told(golden):
    """Every sample comes back as it was sent, and is told from other formats."""
    assert_golden("goldengate", golden)
