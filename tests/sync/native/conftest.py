"""Catalogs of Iceberg tables that are servers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.catalog_servers import CatalogServers, catalog_servers


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CatalogServers]:
    """Servers, each of which runs once it is asked for."""
    with catalog_servers(tmp_path_factory) as made:
        yield made
