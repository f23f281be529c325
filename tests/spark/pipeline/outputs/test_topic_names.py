"""Names of topics: what Kafka takes, and never one for two tables."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cdcavro.errors import SchemaError
from cdcavro.spark.pipeline.outputs.topic_names import check_template, topic_name
from cdcavro.table import TableName

PARTS = st.text(st.sampled_from("_x2f/-.a\x02é"), max_size=6)
NAMES = st.builds(TableName, st.none() | PARTS, st.none() | PARTS, PARTS)


@given(NAMES, NAMES)
@example(TableName(None, None, "_x/"), TableName(None, None, "_x_x2f_"))
@example(TableName("a.b", None, "c"), TableName("a", "b", "c"))
@example(TableName(None, "a", "b"), TableName("a", None, "b"))
@example(TableName(None, "a", "b"), TableName("", "a", "b"))
def test_two_tables_never_have_one_topic(first: TableName, second: TableName):
    """Also where names hold what escapes look like; every name is one that Kafka takes."""
    names = [topic_name("p-{name}", table) for table in (first, second)]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+", name) for name in names)
    assert (names[0] == names[1]) == (first == second)


def test_an_escaped_name_can_be_read_back():
    """Groups of hexadecimal digits are characters; nothing else is one."""
    for part in ("_x2f_", "_x/", "__x_", "a_x2f", "/_", "", "_", "é"):
        topic = topic_name("{name}", TableName(None, None, part))
        read = re.sub(r"_x([0-9a-f]*)_", lambda found: chr(int(found[1], 16)) if found[1] else "", topic)
        assert read == part


def test_one_topic_can_be_for_all_tables():
    """A template without the name."""
    assert topic_name("all", TableName("shop", None, "orders")) == "all"


def test_a_name_that_is_too_long_is_refused():
    """Kafka has 249 characters."""
    assert len(topic_name("{name}", TableName(None, None, "a" * 249))) == 249
    with pytest.raises(SchemaError, match="longer than 249 characters"):
        topic_name("{name}", TableName(None, None, "a" * 250))


@pytest.mark.parametrize("template", ["", ".", "a b", "{table}", "{name}{name}", "é"])
def test_a_template_that_names_no_topics_is_refused(template: str):
    """Before anything is written."""
    with pytest.raises(ValueError, match="a topic has letters"):
        check_template(template)
