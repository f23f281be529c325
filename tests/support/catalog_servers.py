"""Catalogs of Iceberg tables as tests have them: files, and servers that are started when they are first asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.object_store import LOGIN
from support.rest_catalog import nessie, rest_catalog

if TYPE_CHECKING:
    from support.postgresql_server import PostgreSQL

REST, SQL, POSTGRESQL, GLUE, HIVE, NESSIE = "rest", "sql", "postgresql", "glue", "hive", "nessie"


@dataclass
class CatalogServers:
    """The servers; `folders` is where they have what is theirs."""

    folders: pytest.TempPathFactory
    stack: ExitStack

    def properties(self, kind: str, folder: Path) -> dict[str, str]:
        """Return the properties of a catalog whose tables are in a folder, if the server has no place for them."""
        tables = f"file://{folder}/wh"
        match kind:
            case "rest":
                return {"type": "rest", "uri": self._rest}
            case "sql":
                return {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": tables}
            case "postgresql":
                return {"type": "sql", "uri": self.postgresql.uri, "warehouse": tables}
            case "glue":
                return {"type": "glue", "glue.endpoint": self._glue, "glue.region": "us-east-1", "warehouse": tables}
            case "hive":
                return {"type": "hive", "uri": self._hive, "warehouse": tables}
            case "nessie":
                login = dict(zip(("s3.access-key-id", "s3.secret-access-key"), LOGIN, strict=True))
                return {"type": "rest", "uri": self._nessie, "warehouse": "lake", **login}
        raise AssertionError(kind)

    # What starts a server is imported with it: much of it is slow to import, or not there without Java.

    @cached_property
    def postgresql(self) -> PostgreSQL:
        """The server of PostgreSQL."""
        from support.postgresql_server import postgresql  # noqa: PLC0415

        return self.stack.enter_context(postgresql())

    @cached_property
    def _rest(self) -> str:
        return self.stack.enter_context(rest_catalog(self.folders.mktemp("catalog")))

    @cached_property
    def _hive(self) -> str:
        from support.hive_metastore import hive_metastore  # noqa: PLC0415

        return self.stack.enter_context(hive_metastore(self.folders.mktemp("metastore")))

    @cached_property
    def _nessie(self) -> str:
        # What is a server of Glue is one of S3, too.
        return self.stack.enter_context(nessie(self.folders.mktemp("nessie"), self._glue, LOGIN))

    @cached_property
    def _glue(self) -> str:
        from support.glue_server import glue_server  # noqa: PLC0415

        return self.stack.enter_context(glue_server())


@contextmanager
def catalog_servers(folders: pytest.TempPathFactory) -> Iterator[CatalogServers]:
    """Yield servers that are stopped in the end."""
    with ExitStack() as stack:
        yield CatalogServers(folders, stack)
