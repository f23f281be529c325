"""Times without a zone: text, and counted, until somebody says whose they are."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import pytest

from cdcavro.transcoding.mapping import to_changes
from cdcavro.transcoding.transcoder import Transcoder
from cdcavro.transcoding.unzoned import unzoned
from support.messages import shop_canal

SHAREPLEX = '{"meta":{"op":"ins","time":"2020-10-25T02:30:00","posttime":"2020-10-25T04:00:00"},"data":{"id":1}}'
CANAL = (
    '{"type":"UPDATE","id":1,"mysqlType":{"at":"timestamp","dt":"datetime"},'
    '"data":[{"at":"2020-10-25 02:30:00","dt":"2020-10-25 02:30:00"}],"old":[{"at":"0000-00-00 00:00:00"}]}'
)


@pytest.mark.parametrize(
    ("zone", "counts"),
    [
        (None, (2, 1)),
        (ZoneInfo("Asia/Shanghai"), (0, 0)),
        # Berlin has half past two twice on that day.
        (ZoneInfo("Europe/Berlin"), (1, 1)),
    ],
)
def test_times_without_a_zone_stay_text_and_are_counted(zone, counts):
    """SharePlex's own times and TIMESTAMP columns; a zero date is no time, and DATETIME is local by its meaning."""
    found = (unzoned(to_changes(SHAREPLEX, "oms_shareplex", zone=zone)), unzoned(to_changes(CANAL, "canal", zone=zone)))
    assert found == counts


def test_a_time_with_a_fraction_is_an_instant_in_its_zone_like_any_other():
    """Its text is kept, to come back; it is not counted for that."""
    fraction = SHAREPLEX.replace("02:30:00", "02:30:00.123456")
    assert unzoned(to_changes(fraction, "oms_shareplex", zone=ZoneInfo("Asia/Shanghai"))) == 0
    assert unzoned(to_changes(fraction, "oms_shareplex")) == 2


def test_a_transcoder_tells_the_columns():
    """By table and name, the members of the message by their path."""
    transcoder = Transcoder("canal", "oms_default")
    for text in shop_canal():
        transcoder.add(text)
    assert transcoder.unzoned_places["all_types.ts6"] > 0
    assert set(transcoder.unzoned_places) >= {"all_types.ts", "all_types.ts6"}
    assert transcoder.unzoned_places.total() == transcoder.unzoned
    shareplex = Transcoder("oms_shareplex", "oms_canal")
    shareplex.add(SHAREPLEX)
    assert shareplex.unzoned_places == {"$.meta.time": 1, "$.meta.posttime": 1}


def test_a_transcoder_counts_them_over_its_stream():
    """With the zone none is left."""
    for zone, count in ((None, 227), (ZoneInfo("UTC"), 0)):
        transcoder = Transcoder("canal", "oms_canal", zone=zone)
        for text in shop_canal():
            transcoder.add(text)
        assert transcoder.unzoned == count
