"""The facts of `aws_dms`: AWS Database Migration Service to Kafka and Kinesis, JSON."""

from __future__ import annotations

import pytest

from support.roundtrip import assert_golden, golden_cases


@pytest.mark.parametrize("golden", golden_cases("aws_dms"))
def test_golden_message_round_trips_and_is_told(golden):
    """Every sample comes back as it was sent, and is told from other formats."""
    assert_golden("aws_dms", golden)
