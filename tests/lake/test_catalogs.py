"""Catalogs of Iceberg tables: what is refused, and what names they have."""

from __future__ import annotations

import re

import pytest

from cdcavro.lake.catalogs import check_catalog, has_plain_names

REST = {"type": "rest", "uri": "https://c:8181", "credential": "me:secret", "warehouse": "prod"}


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        ({"uri": "canary"}, "the type of a catalog is rest, sql, hive, glue, nessie, not none"),
        ({"type": "file"}, "the type of a catalog is rest, sql, hive, glue, nessie, not 'file'"),
        ({"type": "sql", "warehouse": "canary"}, "a catalog of type sql needs uri"),
        ({"type": "nessie"}, "a catalog of type nessie needs uri and warehouse"),
    ],
)
def test_what_is_no_catalog_is_refused(stated: dict[str, str], said: str):
    """No value but the type is shown."""
    with pytest.raises(ValueError, match=f"{re.escape(said)}$"):
        check_catalog(stated)


@pytest.mark.parametrize(
    ("stated", "is_plain"),
    [
        (REST, False),
        ({"type": "hive"}, True),
        ({"type": "glue"}, True),
        (REST | {"rest.signing-name": "s3tables"}, True),
    ],
)
def test_some_catalogs_have_plain_names(stated: dict[str, str], *, is_plain: bool):
    """Those of Hive, Glue and S3 Tables."""
    assert has_plain_names(stated) == is_plain
