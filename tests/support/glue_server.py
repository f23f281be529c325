"""A Glue catalog: moto's server, which looks at the versions of tables as Glue itself does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from moto.glue.exceptions import GlueClientError
from moto.glue.responses import GlueResponse

from support.object_store import object_store


@contextmanager
def glue_server() -> Iterator[str]:
    """Run a server, let this process and those that it starts log in to it, and give its address."""
    with object_store() as server, pytest.MonkeyPatch.context() as patch:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
            patch.setenv(name, server.environment[name])
        patch.setattr(GlueResponse, "update_table", _update_checked)
        yield server.environment["AWS_ENDPOINT_URL"]


def _update_checked(self: GlueResponse, unchecked: Callable[..., Any] = GlueResponse.update_table) -> Any:
    """Update a table unless it has another version by now, at which moto does not look."""
    name = self.parameters["TableInput"]["Name"]
    table = self.glue_backend.get_table(self.parameters["DatabaseName"], name)
    if self.parameters.get("VersionId", str(table._current_version)) != str(table._current_version):
        raise GlueClientError("ConcurrentModificationException", "Update table failed due to concurrent modifications.")
    return unchecked(self)
