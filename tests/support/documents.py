"""The samples printed in the documentation of the formats, repaired only where they are not valid JSON.

The documents are not part of the project; if they are available, `test_documents.py` compares the golden
messages with them.
"""

from __future__ import annotations

import re

from support.places import SHARED

REFERENCE = SHARED / "reference"
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|[A-Za-z]+|-?[0-9][0-9.eE+-]*|[{}\[\],:]|\s+', re.DOTALL)
_WORDS = {"LONG": "1609344671000", "INTEGER": "4", "BOOLEAN": "false", "XXX": '"XXX"'}
_OMS_NAMES = {
    "Default JSON": ("oms_default", ["as-documented", "insert", "update", "delete"]),
    "Canal-compatible": ("oms_canal", ["as-documented", "insert", "update", "delete"]),
    "Dataworks-compatible": (
        "oms_dataworks",
        ["as-documented", "heartbeat-without-schema", "insert", "update", "delete"],
    ),
    "SharePlex-compatible": ("oms_shareplex", ["as-documented", "insert", "update", "delete"]),
    # The first block lacks recordType: it shows only a part of a message.
    "DefaultExtendColumnType-compatible": ("oms_default_extend_column_type", ["", "insert", "update", "delete"]),
}
_BLOB_NAMES = ["insert", "update-before", "update-after", "delete", "heartbeat", "ddl-alter"]
_TUPLE_NAMES = ["insert", "update-before", "update-after", "delete"]
_TUPLE_COMMENTS = ["comment", "comment", "com1", "com1"]


def documented() -> dict[tuple[str, str], str]:
    """Return every documented message as compact JSON text, by format and name of the golden file."""
    return _oms() | _blob("en") | _blob("zh") | _tuple()


def repair(block: str) -> str:
    """Return a printed sample as valid JSON: without comments, with correct commas and colons, and values for types."""
    tokens: list[str] = []
    for match in _TOKEN.finditer(block):
        token = match.group().replace("\n", "") if match.group().startswith('"') else match.group().strip()
        if not token or token.startswith("//"):
            continue
        if tokens and token in "}]" and tokens[-1] == ",":
            tokens.pop()
        elif tokens and token not in "}],:" and tokens[-1] not in "{[,:":
            is_key = len(tokens) > 1 and tokens[-2] in ("{", ",") and tokens[-1].startswith('"')
            tokens.append(":" if is_key else ",")
        tokens.append(_WORDS.get(token, token))
    return "".join(tokens)


def _oms() -> dict[tuple[str, str], str]:
    text = (REFERENCE / "oms-data-formats.md").read_text(encoding="utf-8")
    found: dict[tuple[str, str], str] = {}
    for section in re.split(r"^### ", text, flags=re.MULTILINE)[1:]:
        format, names = next(value for key, value in _OMS_NAMES.items() if section.startswith(key))
        blocks = re.findall(r"```json\n(.*?)```", section, re.DOTALL)
        for name, block in zip(names, blocks, strict=True):
            if name:
                found[format, name] = repair(block)
    return found


def _blob(language: str) -> dict[tuple[str, str], str]:
    text = (REFERENCE / f"datahub-message-formats.{language}.txt").read_text(encoding="utf-8")
    blocks = [block for block in _objects(text) if '"payload"' in block and "{ ... }" not in block]
    names = _BLOB_NAMES if language == "en" else ["as-documented", *_BLOB_NAMES]
    return {("datahub_blob", f"{name}-{language}"): repair(block) for name, block in zip(names, blocks, strict=True)}


def _objects(text: str) -> list[str]:
    """Return every top-level `{…}` that starts at the beginning of a line."""
    lines = text.split("\n")
    found = []
    for start, line in enumerate(lines):
        if line.strip() == "{" and not line.startswith(" " * 8):
            indent = line[: line.index("{")]
            end = next(i for i in range(start + 1, len(lines)) if lines[i] == indent + "}")
            found.append("\n".join(lines[start : end + 1]))
    return found


def _tuple() -> dict[tuple[str, str], str]:
    text = (REFERENCE / "datahub-message-formats.en.txt").read_text(encoding="utf-8")
    rows = re.findall(r"^(\d{19}) ([IUD]) (\d{13}) ([YN]) ([YN])$", text, re.MULTILINE)
    found = {}
    for name, comment, (sequence, op, time, before, after) in zip(_TUPLE_NAMES, _TUPLE_COMMENTS, rows, strict=True):
        found["datahub_tuple", name] = (
            f'{{"_sequence_id_":"{sequence}","_operation_type_":"{op}","_excute_time_":{time},'
            f'"_source_table_":"t_shiyu_pk","_before_image_":"{before}","_after_image_":"{after}",'
            f'"id":1,"name":"joe","comment":"{comment}"}}'
        )
    return found
