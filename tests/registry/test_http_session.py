"""A password is recognised in whatever a server makes of it, and other sentences are shown."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdcavro import registry
from cdcavro.errors import RegistryError
from cdcavro.registry.http_session import HIDDEN, Credentials
from support.transforms import TRANSFORMS

CANARY = 'c4n@ry pa:ss/w<ö"&rd'


@pytest.mark.parametrize("inner", TRANSFORMS)
def test_a_password_is_not_shown_in_any_form(inner):
    """Transformed once and again, alone or within a sentence, with or without the user before it."""
    credentials = Credentials(("user", CANARY))
    for outer in TRANSFORMS:
        if inner == "capitals" and outer != "as it is":
            continue  # what is in another case is not base64 any more
        if outer == "capitals" and "base64" in inner:
            continue
        for said in (CANARY, f"wrong: {CANARY}!", f"user:{CANARY}", f"http://user:{CANARY}@host/"):
            told = TRANSFORMS[outer](TRANSFORMS[inner](said))
            assert credentials.safe(told) == HIDDEN, outer
            assert credentials.safe(f"the server says '{told}' and no more") == HIDDEN, outer


@given(
    st.text(string.printable + "äöü日本", min_size=6, max_size=40).filter(lambda text: len("".join(text.split())) > 5),
    st.sampled_from(sorted(TRANSFORMS)),
    st.text(max_size=20),
    st.text(max_size=20),
)
def test_any_password_is_recognised(password, name, before, behind):
    """Whatever stands before and behind it."""
    told = f"{before} {TRANSFORMS[name](password)} {behind}"
    assert Credentials(("u", password)).safe(told) == HIDDEN or name in ("JSON", "Python")


@pytest.mark.parametrize(
    "sentence",
    [
        "Schema being registered is incompatible with an earlier schema for subject 'orders-value'",
        "dXNlcjpzb21lYm9keSBlbHNl",
        "",
        "\\u00",
        "%zz&#;",
        "c4n@ry",
    ],
)
def test_other_sentences_are_shown(sentence):
    """What a server says helps whoever reads it."""
    assert Credentials(("user", CANARY)).safe(sentence) == sentence
    assert Credentials(None).safe(CANARY) == CANARY
    assert Credentials(("user", "")).safe(CANARY) == CANARY


def test_a_sentence_that_grows_when_it_is_read_is_looked_at_in_bounded_time():
    """Only what could be shown is looked at, and only so many forms of it."""
    credentials = Credentials(("user", CANARY))
    for sentence in ("%25" * 1_000_000, "&amp;" * 1_000_000, "\\\\" * 1_000_000, "A" * 10_000_000, "4141" * 1_000_000):
        assert credentials.safe(sentence) == sentence


@pytest.mark.parametrize(
    "address",
    [
        "file://user:secret@host/schemas",
        "file://user:secret@localhost/schemas",
        "file:///user:secret@host/schemas",
        "file:user:secret@host/schemas",
        "file:http://user:secret@host/schemas",
        "file:https://user:secret@host",
        "file:user%3Asecret%40host/schemas",
        "FILE:/tmp/user:secret@host",
    ],
)
def test_an_address_of_a_folder_with_credentials_is_refused(tmp_path, monkeypatch, address):
    """It would become a folder whose name holds the password; and no error shows it."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RegistryError) as caught:
        registry.connect(address).publish('"int"', "s")
    assert "secret" not in str(caught.value) + repr(caught.value)
    assert list(tmp_path.iterdir()) == []
