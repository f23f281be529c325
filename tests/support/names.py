"""Names that messages can bring and that lakes, topics and files of Avro keep apart."""

from __future__ import annotations

from hypothesis import strategies as st

from cdcavro.lake.escaped_names import folder_names
from cdcavro.table import TableName

HOSTILE = ["", ".", "..", "a/b", "a~2f~b", "~", "~~", "~2f~", "A", "a", "_cdc_key", "_CDC_KEY", "~5f~cdc_key", "ß", "SS", "ss",
           "`", "a`; DROP TABLE x; --", "\n", "\0", "\ud800", "é", "日本", "a b", "a ", " a", "a.", "_a", "%2f", "x=1", "${x}", "~24~{x}", "~2${x}"]  # fmt: skip
names = st.text(max_size=6) | st.sampled_from(HOSTILE)

# What looks like what is escaped, like what is behind names, like itself in another case or normal form, or like nothing.
PIECES = ["a", "A", "\u00df", "ss", "\u1e9e", "\u212b", "\u00c5", "e\u0301", "\u00e9", "\u0301" * 9, "\ufb01", "fi", "\u0130", "\u0131", "i", "\u03c3", "\u03c2",
          "\u1100", "\u1161", "\uac00", "\u3164", "\u115f", "\uffa0", "\u2800", "\ufe0f", "\u202e", "\u200b", "\u00ad", "\U0001d159", "\U000e0041",
          "~", "~~", "7e", "2", "~2", "~2f~", "deletes", "changes", "empty", "~~deletes", "~~changes", "/", ".", "_", " ", "", "\x02"]  # fmt: skip
parts = st.lists(st.sampled_from(PIECES), max_size=4).map("".join) | names
# What a message can hold: half of a surrogate pair is refused.
told = parts.filter(lambda text: text.encode(errors="ignore").decode() == text)
tables = st.builds(TableName, st.none() | parts, st.none() | parts, parts)
FORMS = ("NFC", "NFD", "NFKC", "NFKD")


def paths(table: TableName) -> dict[tuple[str, ...], str]:
    """Return the folders of all lake tables of a table, each with what it is."""
    return {folder_names(table, suffix): suffix for suffix in ("", "deletes", "changes")}
