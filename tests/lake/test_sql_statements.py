"""The statements of SQL that change lake tables: whatever names and texts are in them, they end where they end."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from sqlglot import tokenize
from sqlglot.tokens import TokenType

from cdcavro.lake import sql_statements as sql
from cdcavro.lake.escaped_names import quote
from cdcavro.lake.evolution import ADD, DROP, FRONT, KINDS, MARK, RENAME, WIDEN, LakeColumn, Step

NAMES = ["plain", "`; DROP TABLE x; --", "a``b", "'", "/*", "é\n\\"]
TABLE = quote("la`ke", "t`; --")
SOURCE = "source_view"


def read(statement: str) -> tuple[set[str], set[str], list[str]]:
    """Return the identifiers between quotes, the texts and the other words of a statement, as Spark's dialect has them."""
    tokens = tokenize(statement, read="spark")
    identifiers = {one.text for one in tokens if one.token_type == TokenType.IDENTIFIER}
    texts = {one.text for one in tokens if one.token_type == TokenType.STRING}
    others = [one.text for one in tokens if one.token_type not in (TokenType.IDENTIFIER, TokenType.STRING)]
    assert not any(one.comments for one in tokens)
    return identifiers, texts, others


def column(name: str) -> LakeColumn:
    """Return a column whose field has an odd name, too."""
    return LakeColumn(name, f"field of {name}", "int")


def test_a_table_is_created_with_the_columns_it_is_told():
    """Names, comments and properties are those that were given."""
    made = sql.create_table(TABLE, [column(name) for name in NAMES], sql.STATE, "delta", {"it's": "\\"})
    identifiers, texts, others = read(made)
    assert identifiers == {"la`ke", "t`; --", *NAMES, *sql.STATE}
    assert texts == {*[f"field of {name}" for name in NAMES], "it's", "\\"}
    assert ";" not in others


@pytest.mark.parametrize("kind", [ADD, RENAME, WIDEN, MARK, DROP])
def test_a_step_names_its_column_and_nothing_else(kind: str):
    """Whatever it is called."""
    for name in NAMES:
        step = Step(kind, name, column(f"new {name}"))
        identifiers, texts, others = read(sql.alter_table(TABLE, step))
        named = {ADD: {f"new {name}"}, RENAME: {name, f"new {name}"}}.get(kind, {name})
        assert identifiers == {"la`ke", "t`; --", *named}
        assert texts == ({f"field of new {name}"} if kind in (ADD, MARK) else set())
        assert others[:2] == ["ALTER", "TABLE"]
        assert ";" not in others


def test_an_added_column_goes_behind_the_one_it_is_told_or_to_the_front():
    """By default behind all."""
    for name in NAMES:
        identifiers, texts, others = read(sql.alter_table(TABLE, Step(ADD, "new", column("new"), name)))
        assert identifiers == {"la`ke", "t`; --", "new", name}
        assert texts == {"field of new"}
        assert others[-3:] == ["COMMENT", "AFTER", ")"]
    assert read(sql.alter_table(TABLE, Step(ADD, "new", column("new"), FRONT)))[2][-3:] == ["COMMENT", "FIRST", ")"]
    assert read(sql.alter_table(TABLE, Step(ADD, "new", column("new"))))[2][-2:] == ["COMMENT", ")"]


def test_columns_about_changes_are_those_that_a_table_has_and_null_unless_they_are_chosen():
    """Each of the fields of an envelope's source that it names."""
    words = [*sql.CHANGE_COLUMNS]
    chosen = sql.change_types(words)
    made = sql.change_values([*chosen, "id", sql.KEY], words)
    assert [*made] == [*chosen]
    fields = {name for one in sql.CHANGE_COLUMNS.values() for name in one.fields}
    assert {name for one in made.values() for name in read(one)[0]} == {"source", *fields}
    assert made["_cdc_headers"] == "CAST(`headers` AS string)"
    assert sql.change_values(["_cdc_time", "_cdc_line"], ["line"]) == {
        "_cdc_time": "CAST(NULL AS timestamp)",
        "_cdc_line": "CAST(`source`.`message_line` AS bigint)",
    }
    assert sql.change_values(["id", sql.KEY], words) == {}


def test_columns_about_changes_are_added_where_they_are_chosen_and_missing():
    """And no other column of this project's own."""
    own = {**sql.STATE, **sql.change_types(["line", "time"])}
    steps = sql.change_column_steps(own, ["id", "_cdc_time"])
    assert [(one.kind, one.name, one.column.type) for one in steps] == [(ADD, "_cdc_line", "bigint")]


def test_a_column_about_changes_that_is_none_is_an_error():
    """It names those that there are; one that stands twice is an error, too."""
    known = "time, transaction, source, connector, topic, partition, offset, file, line, headers"
    with pytest.raises(ValueError, match=f"^columns about a change are {known}, not 'header'$"):
        sql.check_change_columns(["time", "header"])
    with pytest.raises(ValueError, match=r"^'time' stands twice among the columns about a change$"):
        sql.check_change_columns(["time", "file", "time"])


def test_a_step_of_no_known_kind_is_an_error():
    """It names those that are known."""
    with pytest.raises(ValueError, match=f"^split is none of {', '.join(KINDS)}$"):
        sql.alter_table(TABLE, Step("split", "a", column("a")))


COLUMNS = {name: (f"field of {name}", name) for name in NAMES}
TEXTS = {name: (name, f"{name} before") for name in NAMES}
EVERY_TEXT = {one for names in TEXTS.values() for one in names}


@pytest.mark.parametrize("is_guarded", [True, False])
@pytest.mark.parametrize("apart", [[], NAMES[:1], NAMES])
def test_a_merge_sets_the_columns_it_is_told(apart: list[str], is_guarded: bool):
    """Each from the same column of its source; a text is never an identifier."""
    made = sql.merge_state(TABLE, SOURCE, COLUMNS, texts=TEXTS, apart=apart, is_guarded=is_guarded)
    identifiers, texts, others = read(made)
    own = {sql.KEY, sql.ORDER, sql.OLDER, sql.UNPARSED, *([sql.DELETED] if is_guarded else [])}
    assert identifiers == {"la`ke", "t`; --", "s", "t", *NAMES, *own}
    # Texts of misfits are those of any column, and orders those of columns that changes may lack.
    assert texts == {*(EVERY_TEXT if apart else []), *(one for name in apart for one in COLUMNS[name])}
    assert others.count("MERGE") == 1
    assert ("DELETE" in others) == is_guarded
    assert ";" not in others


def test_what_is_deleted_is_said_by_order_and_by_time():
    """In values that Spark reads as they were, instants to the microsecond."""
    floor, moment = b"\x00\xff'", datetime(2026, 11, 23, 1, 2, 3, 456789, UTC)
    assert read(sql.delete_up_to(TABLE, sql.ORDER, floor))[0] == {"la`ke", "t`; --", sql.ORDER}
    assert sql.delete_up_to(TABLE, sql.ORDER, floor).endswith("<= X'00ff27'")
    micros = int(moment.timestamp()) * 1_000_000 + 456789
    assert sql.delete_up_to(TABLE, sql.AT, moment).endswith(f"<= timestamp_micros({micros})")
    assert sql.delete_up_to(TABLE, sql.ORDER, floor, "it's").endswith(r"<= X'00ff27' AND `_cdc_shard` = 'it\'s'")
    identifiers, texts, others = read(sql.forget_below(TABLE, COLUMNS, TEXTS, floor))
    assert identifiers == {"la`ke", "t`; --", *NAMES, sql.ORDER, sql.OLDER, sql.UNPARSED}
    assert texts == {*EVERY_TEXT, *(one for names in COLUMNS.values() for one in names)}
    assert ";" not in others
    assert read(sql.set_properties(TABLE, {"a'b": "c\\d"}))[1] == {"a'b", "c\\d"}
