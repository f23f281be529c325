"""What `.pxd` files declare is there, so that no type is lost in silence."""

from __future__ import annotations

import re

import pytest

from support.declarations import declared, missing
from support.places import ROOT

DECLARATIONS = sorted((ROOT / "cdcavro").rglob("*.pxd"))
SOURCE = """
from cdcavro.exact.jsontext import MAX_LONG

_BOUND = 7

class Reader:
    def __init__(self, inner):
        self._inner = inner

    def read(self, payload, first=True):
        for field in payload:
            size = len(field)
        return size

def kind(value):
    return value
"""
DECLARED = """
cimport cython
from cdcavro.exact.jsontext cimport kind

cdef int _BOUND  # in C
cdef long long MAX_LONG

@cython.final
cdef class Reader:
    cdef readonly object _inner
    @cython.locals(
        field=bytes, size=Py_ssize_t
    )
    cpdef Py_ssize_t read(self, object payload, bint first=*) except? -1

cpdef kind(const unsigned char *value)
"""


@pytest.mark.parametrize("path", DECLARATIONS, ids=lambda path: str(path.relative_to(ROOT)))
def test_all_that_is_declared_is_there(path):
    """Every class, function, parameter, attribute and local variable of a `.pxd` exists in its source."""
    text, source = path.read_text(encoding="utf-8"), path.with_suffix(".py").read_text(encoding="utf-8")
    compiled = path.with_suffix(".pyx")
    if compiled.exists():
        assert missing_of_cython(text, compiled.read_text(encoding="utf-8"), source) == []
    else:
        assert missing(text, source) == []


def missing_of_cython(text, compiled, source):
    """What is not in a source in Cython's own language; attributes may be there for subclasses, as in the Python source."""
    made = declared(text)
    patterns = [rf"class {name}\b" for name in made.classes] + [rf"\b{one.name}\(" for one in made.functions]
    lost = [pattern for pattern in patterns if not re.search(pattern, compiled)]
    attributes = [rf"\w\.{name}\b" for _, name in made.attributes]
    return lost + [pattern for pattern in attributes if not re.search(pattern, compiled + source)]


def test_declarations_are_read():
    """The example that the next test changes has nothing missing."""
    assert missing(DECLARED, SOURCE) == []


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("class Reader:", "class Renamed:", ["class Reader", "function Reader.read"]),
        ("self._inner", "self._renamed", ["attribute Reader._inner"]),
        ("_BOUND = 7", "_RENAMED = 7", ["name _BOUND"]),
        ("import MAX_LONG", "import MIN_LONG", ["name MAX_LONG"]),
        ("def read(", "def renamed(", ["function Reader.read"]),
        ("payload, first=True", "payload, renamed=True", ["parameters of Reader.read: self, payload, first"]),
        ("size = len", "renamed = len", ["local size of Reader.read"]),
        ("for field in", "for renamed in", ["local field of Reader.read"]),
        ("def kind(value)", "def renamed(value)", ["function kind"]),
        ("def kind(value)", "def kind(renamed)", ["parameters of kind: value"]),
    ],
)
def test_what_was_renamed_in_the_source_only_is_missing(before, after, said):
    """Each kind of name that a declaration has."""
    assert missing(DECLARED, SOURCE.replace(before, after)) == said


@pytest.mark.parametrize("text", ["ctypedef int number", "cpdef kind(object value", "cdef:"])
def test_a_declaration_of_another_kind_is_refused(text):
    """What is not understood is not passed over."""
    with pytest.raises(ValueError, match=r"not a declaration|not closed"):
        declared(text)
