"""Instants as formats spell them."""

from __future__ import annotations

import random
from datetime import UTC, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

import pytest
import pytz
from hypothesis import given
from hypothesis import strategies as st

import cdcavro
from cdcavro import Tables, from_changes, to_changes, transcode
from cdcavro.exact import instants
from cdcavro.exact.instants import (
    MILLISECOND,
    SECOND,
    find_zone,
    from_count,
    from_local,
    from_text,
    to_count,
    to_local,
)
from cdcavro.lake.typed_rows import TypedRows
from cdcavro.transcoding.transcoder import Transcoder

MESSAGE = '{"meta":{"op":"ins"},"data":{"id":1}}'
ZONES = [ZoneInfo(name) for name in ("UTC", "Asia/Shanghai", "Europe/Berlin", "America/St_Johns")]


@pytest.mark.parametrize(
    ("zone", "said"),
    [("Asia/Shanghai", "'Asia/Shanghai'"), ("", "''"), (8, "8"), (ZoneInfo, "<class 'zoneinfo.ZoneInfo'>")],
)
@pytest.mark.parametrize(
    "call",
    [
        lambda zone: cdcavro.to_changes(MESSAGE, "oms_shareplex", zone=zone),
        lambda zone: cdcavro.from_changes([], "oms_shareplex", zone=zone),
        lambda zone: cdcavro.transcode(MESSAGE, "oms_shareplex", "oms_canal", zone=zone),
        lambda zone: Transcoder("oms_shareplex", "oms_canal", zone=zone),
    ],
)
def test_a_zone_is_no_text(call, zone, said):
    """Refused at once, whether a time needs it or not."""
    with pytest.raises(TypeError) as caught:
        call(zone)
    assert str(caught.value) == f"a zone is a zoneinfo.ZoneInfo or another tzinfo, not {said}"


@given(st.integers(0, 2**62), st.sampled_from([SECOND, MILLISECOND]))
def test_a_count_comes_back(count, unit):
    """As a number and as text, unless it has no place in 64 bits of microseconds."""
    for value in (count, str(count)):
        instant = from_count(value, unit)
        assert instant is None if count * unit >= 2**63 else to_count(instant, unit) == count


@given(st.integers(0, 2**62), st.sampled_from([SECOND, MILLISECOND]))
def test_an_instant_finer_than_the_unit_is_rounded_down(instant, unit):
    """To the last count that is not later."""
    count = to_count(instant, unit)
    assert count * unit <= instant < (count + 1) * unit


@pytest.mark.parametrize("value", [-1, "-1", "", "01", "1.5", 1.5, None, True, "٣", "9" * 400])
def test_what_is_no_count_is_no_instant(value):
    """DataHub says -1 in a full load."""
    assert from_count(value, SECOND) is None


@given(st.integers(0, 4_000_000_000), st.sampled_from(ZONES))
def test_a_local_time_is_read_only_if_it_is_one_instant(second, zone):
    """What `to_local` gives, `from_local` reads back; a time that the zone has twice is given as none."""
    text = to_local(second * SECOND, zone)
    assert text is None or from_local(text, zone) == second * SECOND


def test_a_local_time_is_rounded_down_to_the_second():
    """The text has no fraction."""
    assert to_local(1_606_262_462_999_999, ZoneInfo("UTC")) == "2020-11-25T00:01:02"


def test_times_that_a_zone_has_twice_or_never_are_none():
    """The hour of summer time's end and of its beginning."""
    berlin = ZoneInfo("Europe/Berlin")
    assert from_local("2020-10-25T02:30:00", berlin) is None
    assert from_local("2020-03-29T02:30:00", berlin) is None
    assert from_local("2020-03-29T03:30:00", berlin) == 1_585_445_400_000_000
    assert from_local("2020-13-01T00:00:00", berlin) is None


class PytzZone(tzinfo):
    """A zone as pytz makes them: by itself it has mean solar time."""

    def localize(self, naive):
        """Return a local time of the zone."""


@pytest.mark.parametrize(
    "convert", [lambda zone: from_local("2020-11-25T00:01:02", zone), lambda zone: to_local(0, zone)]
)
def test_a_zone_of_pytz_is_refused(convert):
    """It would be some minutes off without a word."""
    with pytest.raises(TypeError) as caught:
        convert(PytzZone())
    assert str(caught.value) == f"a zone as of zoneinfo.ZoneInfo, not {__name__}.PytzZone"


@pytest.mark.parametrize("zone", [None, *ZONES])
@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2020-11-25T00:01:02Z", 1_606_262_462_000_000),
        ("2020-11-25T08:01:02+08:00", 1_606_262_462_000_000),
        ("2020-11-24 20:31:02.500001-03:30", 1_606_262_462_500_001),
        ("2020-10-25T02:30:00+01:00", 1_603_589_400_000_000),
        ("2020-11-25T00:01:02.1234567Z", None),
        ("2020-11-25T00:01:02+24:00", None),
        ("2020-11-25T00:01:02+08:60", None),
        ("2020-11-25T00:01:60Z", None),
        ("2020-11-25T00:01:02z", None),
        ("2020-11-25T00:01:02 Z", None),
        ("0000-00-00T00:00:00Z", None),
        (None, None),
        (7, None),
    ],
)
def test_a_text_with_a_zone_is_an_instant_whatever_the_zone_of_the_source(text, instant, zone):
    """Exactly, or not at all."""
    assert from_text(text, zone) == instant


@pytest.mark.parametrize("zone", [None, *ZONES])
def test_a_text_without_a_zone_is_a_local_time(zone):
    """As in `from_local`."""
    assert from_text("2020-11-25T00:01:02", zone) == from_local("2020-11-25T00:01:02", zone)


# Clocks set back by an hour, by half of one, by a minute and by 44; set forward over a day; summer time that ends in spring.
CHANGED = {
    "Europe/Berlin": "2023-10-29T01:00:00",
    "Australia/Lord_Howe": "2023-04-01T15:00:00",
    "America/St_Johns": "1987-10-25T02:30:00",
    "Africa/Monrovia": "1972-01-07T00:44:30",
    "Pacific/Apia": "2011-12-30T10:00:00",
    "Africa/Casablanca": "2023-03-19T02:00:00",
    "Asia/Kolkata": "1941-10-01T00:00:00",
    "Asia/Kathmandu": "1986-01-01T00:00:00",
    "UTC": "1970-01-01T00:00:00",
}
_ODD = timezone(timedelta(hours=-3, minutes=-7, seconds=-9))
_FIRST, _LAST = -62_135_596_800, 253_402_300_799


def _assert_remembered(seconds, zone, part=""):
    """Check that the ways which remember hours give what the zone gives."""
    local = to_local(seconds * SECOND, zone)
    assert local == instants._local(seconds * SECOND, zone)
    text = (local or to_local(seconds * SECOND, UTC) or "9999-12-31T23:59:60") + part
    for spelled in (text, text.replace("T", " "), text[:-1], text.replace("0", "6")):
        assert from_local(spelled, zone) == instants._instant(spelled, zone)


@pytest.mark.parametrize("name", CHANGED)
def test_hours_in_which_clocks_are_changed_are_not_taken_for_others(name):
    """Both ways, for a day before and after every kind of change, and for the local times that there are twice or never."""
    changed = from_local(CHANGED[name], UTC) // SECOND
    for seconds in range(changed - 90_000, changed + 90_000, 449):
        _assert_remembered(seconds, ZoneInfo(name))
        for zone in (ZoneInfo(name), ZoneInfo("UTC")):
            local = to_local(seconds * SECOND, UTC)
            assert from_local(local, zone) == instants._instant(local, zone)


@given(
    st.integers(_FIRST - 90_000, _FIRST + 90_000)
    | st.integers(_LAST - 90_000, _LAST + 90_000)
    | st.integers(_FIRST, _LAST),
    st.sampled_from([*map(ZoneInfo, CHANGED), _ODD]),
    st.sampled_from(["", ".5", ".012345", ".0123456", ". 5", ".\u0663", "Z"]),
)
def test_hours_that_are_remembered_give_what_the_zone_gives(seconds, zone, part):
    """In all years, at both ends of the calendar, with a fraction and what is none."""
    _assert_remembered(seconds, zone, part)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("Asia/Shangai", ": did you mean Asia/Shanghai?"),
        ("asia/shanghai ", ": did you mean Asia/Shanghai?"),
        ("Asia", ""),
        ("", ""),
        ("../../etc/passwd", ""),
        ("x" * 10_000, ""),
    ],
)
def test_a_name_that_no_zone_has_is_told_with_the_nearest(name, hint):
    """Also where it is a folder of zones, or a path."""
    with pytest.raises(ValueError, match="no time zone is called") as told:
        find_zone(name)
    assert str(told.value).endswith(hint or "'")


ZONED = {
    "Tables": lambda zone: Tables(zone=zone),
    "TypedRows": lambda zone: TypedRows(Tables(zone=zone)),
    "to_changes": lambda zone: to_changes("{}", "canal", zone=zone),
    "from_changes": lambda zone: from_changes([], "canal", zone=zone),
    "transcode": lambda zone: transcode("{}", "canal", "oms_canal", zone=zone),
    "Transcoder": lambda zone: Transcoder("canal", "oms_canal", zone=zone),
}


@pytest.mark.parametrize("name", ZONED)
@pytest.mark.parametrize("zone", ["Asia/Shanghai", "", 8, pytz.timezone("Asia/Shanghai")])
def test_what_is_no_zone_is_refused_where_it_is_given(name, zone):
    """Not at the first time of day that needs it."""
    with pytest.raises(TypeError, match=r"^a zone "):
        ZONED[name](zone)


@pytest.mark.parametrize("day", ["0000-01-01", "0001-01-01", "2023-02-28", "2023-02-29", "2024-02-29", "2024-04-31"])
@pytest.mark.parametrize("clock", ["T00:00:00", " 23:59:59.999999", " 24:00:00", "T12:60:00", "T12:00:60", " 1:00:00"])
def test_a_local_time_is_one_that_a_datetime_has(day, clock):
    """The pattern of usual days takes no text that is no time, and leaves the others to the datetime."""
    text = day + clock
    assert instants.is_local(text) is (instants._parse_local(text) is not None)


def test_pieces_of_local_times_are_told_as_a_datetime_tells_them():
    """Whatever is put together of the pieces of local times is one for the pattern and the datetime alike."""
    chance = random.Random(1)
    pieces = [("0000", "0001", "2024", "9999", "\u0662024"), ("-00", "-01", "-02", "-12", "-13"), ("-00", "-28", "-31")]
    pieces += [("T", " ", "x"), ("00", "23", "24"), (":00", ":59", ":60"), (":00", ":59", ":60")]
    pieces += [("", ".", ".1", ".123456", ".1234567", "\n")]
    texts = ["".join(map(chance.choice, pieces)) for _ in range(2_000)]
    told = [instants.is_local(text) for text in texts]
    assert told == [instants._parse_local(text) is not None for text in texts]
    assert {*told} == {True, False}
