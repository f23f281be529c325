"""A second Ctrl-C, while the main thread is in a call of a library that does not heed signals."""

from __future__ import annotations

import subprocess
import sys

import pytest

from support.processes import running

PROGRAM = """
import hashlib, signal, sys
for number in (signal.SIGINT, signal.SIGTERM):
    # What Python would do, it does when the call is over.
    signal.signal(number, lambda *_: None)
from cdcavro.cli.interrupts import second_signal_ends
with second_signal_ends(lambda: print("what was done", file=sys.stderr)):
    print("begun", flush=True)
    hashlib.pbkdf2_hmac("sha256", b"", b"", 2**31 - 1)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(2, 130), (15, 143)])
def test_a_second_signal_ends_a_process_that_heeds_none(number: int, code: int):
    """The first one says what is waited for, the second one what was done."""
    command = [sys.executable, "-c", PROGRAM]
    with running(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "begun\n"
        process.send_signal(number)
        assert "Ctrl-C again ends at once" in process.stderr.readline()
        process.send_signal(number)
        assert process.stderr.read() == "what was done\n"
    assert process.returncode == code
