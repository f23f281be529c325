"""Sources of messages: what is looked at before anything is read."""

from __future__ import annotations

import os
from pathlib import Path

from cdcavro.sync.reading.file_source import FileReader
from cdcavro.sync.sources import Files, check_links
from support.roundtrip import error_of


def test_a_folder_that_links_lead_to_twice_is_refused(tmp_path: Path):
    """Spark would read it as often, and in a circle until a path is too long."""
    for name in ("in/a", "in/b", "other"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "in" / "link").symlink_to(tmp_path / "other")
    check_links(tmp_path / "in")
    check_links(tmp_path / "in" / "nothing")
    for link, target in (("in/a/again", "other"), ("other/back", "in"), ("in/b/self", "in/b")):
        (tmp_path / link).symlink_to(tmp_path / target)
        said = error_of(check_links, tmp_path / "in")
        assert said.endswith(f"got a link to {tmp_path / target}, which is read already")
        (tmp_path / link).unlink()


def test_a_pipe_is_refused_before_anything_is_read(tmp_path: Path):
    """Reading it would wait for a writer, and what came out of it could not be read again after a kill."""
    (tmp_path / "in").mkdir()
    pipe = tmp_path / "in" / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "in" / "dangling").symlink_to(tmp_path / "nothing")
    (tmp_path / "in" / "link").symlink_to(pipe)
    expected = "expected a file that can be read again, got a pipe, a socket or a device"
    for name in (pipe, tmp_path / "in", tmp_path / "in" / "link"):
        assert error_of(Files(str(name)).check_path).endswith(expected)
        assert error_of(FileReader(str(name)).new, {}).endswith(expected)
    pipe.unlink()
    assert Files(str(tmp_path / "in")).check_path() == f"{tmp_path / 'in'} has no file so far"
    assert FileReader(str(tmp_path / "in")).new({}) == []
