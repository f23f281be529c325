"""Sources of messages: what is looked at before anything is read."""

from __future__ import annotations

from pathlib import Path

from cdcavro.sync.sources import check_links
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
