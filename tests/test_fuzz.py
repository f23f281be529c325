"""What the fuzzer found and began with goes its way without atheris, too."""

from __future__ import annotations

import pytest

from support.fuzz import CORPUS, TARGETS, tried


@pytest.mark.parametrize("target", TARGETS)
def test_inputs_of_the_fuzzer_end_in_errors_of_the_project_or_come_back(target):
    """A small corpus of each target: the inputs that took branches no other took."""
    inputs = sorted((CORPUS / target).iterdir())
    assert inputs
    for path in inputs:
        tried(target, path.read_bytes())
