"""The errors: one tree, each also a natural builtin, sentences bounded whatever a message holds."""

from __future__ import annotations

import copy
import pickle
import unicodedata

import pytest

import cdcavro
from cdcavro.errors import CdcAvroError, json_path, plain, shown, visible, visible_lines
from support.roundtrip import error_of

_MEGABYTE = 1_000_000
_ERRORS = [
    (cdcavro.UnknownFormatError("x", ["a", "b"]), "unknown format 'x': known are a, b"),
    (cdcavro.UnknownFormatError("oms_cannal", ["oms_canal"]), "unknown format 'oms_cannal': did you mean oms_canal?"),
    (cdcavro.SchemaError("$.fields[0]", "name is missing"), "schema $.fields[0]: name is missing"),
    (cdcavro.ResolutionError("$", "int cannot read long"), "schema $: int cannot read long"),
    (cdcavro.MessageError("a", "b"), "message: $: expected a, got b"),
    (cdcavro.TextError("JSON", "x", pointer="/a/0"), "message: $.a[0]: expected JSON, got x"),
    (
        cdcavro.StructureError("object", "array", pointer="/d", format="oms_canal"),
        "oms_canal: $.d: expected object, got array",
    ),
    (
        cdcavro.MisfitError("date", "string '0'", pointer="/after/d", format="canal"),
        "canal: $.after.d: expected date, got string '0'",
    ),
    (cdcavro.UnknownMessageError("a message", "array"), "message: $: expected a message, got array"),
    (
        cdcavro.PayloadError("1 byte", "0", format="oms_default"),
        "oms_default: $: expected 1 byte, got 0",
    ),
    (
        cdcavro.OrderError("oms_canal", "t"),
        "oms_canal: expected a position or a place to order the change of 't' by, got none",
    ),
    (
        cdcavro.OrderError("oms_canal", "t", "some with numbers and some with no numbers"),
        (
            "oms_canal: expected the same kind of position in all changes of 't',"
            " got some with numbers and some with no numbers"
        ),
    ),
    (cdcavro.OrderError(None, None), "change: expected a position or a place to order the change by, got none"),
    (
        cdcavro.DdlError("MySQL", "a name", "','", 2, 7),
        "MySQL DDL: line 2, column 7: expected a name, got ','",
    ),
    (cdcavro.FileError("a.avro", "Avro", "JSON"), "a.avro: expected Avro, got JSON"),
    (
        cdcavro.RegistryError("https://h/x", "the user may not do that", status=403, subject="s"),
        "registry https://h/x: subject 's': 403: the user may not do that",
    ),
    (cdcavro.RegistryError("file:s", "it is damaged"), "registry file:s: it is damaged"),
    (cdcavro.UnknownSchemaError("file:s", "id 7"), "registry file:s: there is no id 7"),
    (
        cdcavro.IncompatibleError("s", "FULL", ["version 1: a", "version 2: b"]),
        "subject 's' is FULL, and the schema is not:\n  version 1: a\n  version 2: b",
    ),
    (
        cdcavro.IncompatibleError("s", "FULL", map(str, range(1021))),
        "subject 's' is FULL, and the schema is not:\n  " + "\n  ".join(map(str, range(20))) + "\n  ... and 1,001 more",
    ),
    (cdcavro.JobError("the Spark job failed: no space"), "the Spark job failed: no space"),
    (cdcavro.SetupError("Java is missing"), "Java is missing"),
    (cdcavro.JobError("the Spark job failed"), "the Spark job failed"),
]
_IDS = [type(error).__name__ for error, _ in _ERRORS]


@pytest.mark.parametrize(("error", "sentence"), _ERRORS, ids=_IDS)
def test_sentence_is_built_from_the_facts(error, sentence):
    """Each error says where, what was expected and what came, in one sentence."""
    assert str(error) == sentence


@pytest.mark.parametrize("error", [error for error, _ in _ERRORS], ids=_IDS)
def test_one_root_catches_all(error):
    """Every error that the package shows is in the tree."""
    assert isinstance(error, cdcavro.CdcAvroError)
    assert getattr(cdcavro, type(error).__name__) is type(error)


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (cdcavro.UnknownFormatError, LookupError),
        (cdcavro.SchemaError, ValueError),
        (cdcavro.ResolutionError, cdcavro.SchemaError),
        (cdcavro.MessageError, ValueError),
        (cdcavro.TextError, cdcavro.MessageError),
        (cdcavro.StructureError, cdcavro.MessageError),
        (cdcavro.MisfitError, cdcavro.StructureError),
        (cdcavro.UnknownMessageError, cdcavro.MessageError),
        (cdcavro.PayloadError, cdcavro.MessageError),
        (cdcavro.OrderError, ValueError),
        (cdcavro.DdlError, ValueError),
        (cdcavro.FileError, ValueError),
        (cdcavro.RegistryError, OSError),
        (cdcavro.UnknownSchemaError, LookupError),
        (cdcavro.IncompatibleError, ValueError),
        (cdcavro.JobError, RuntimeError),
        (cdcavro.SetupError, RuntimeError),
    ],
)
def test_error_is_the_natural_builtin_too(error, builtin):
    """Who knows nothing of the tree catches what Python has for such a case."""
    assert issubclass(error, builtin)


def test_every_error_of_the_package_is_shown_here():
    """The list above leaves none out but the root."""
    public = {getattr(cdcavro, name) for name in cdcavro.__all__ if name.endswith("Error")}
    assert public == {type(error) for error, _ in _ERRORS} | {cdcavro.CdcAvroError}


@pytest.mark.parametrize("remade", [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))])
@pytest.mark.parametrize("error", [error for error, _ in _ERRORS], ids=_IDS)
def test_error_crosses_processes_with_its_facts(error, remade):
    """Spark's workers send errors by pickle: the sentence and the attributes arrive."""
    again = remade(error)
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)


def test_facts_are_attributes():
    """An error of a message tells its format, path, pointer, expectation and what came."""
    with pytest.raises(cdcavro.StructureError) as caught:
        cdcavro.encode('{"type":"INSERT","data":[{},7]}', "oms_canal")
    error = caught.value
    assert (error.format, error.path, error.pointer) == ("oms_canal", "$.data[1]", "/data/1")
    assert (error.expected, error.got, error.reason) == ("object", "number", "expected object, got number")


@pytest.mark.parametrize(
    "call", [lambda name: cdcavro.encode("{}", name), lambda name: cdcavro.decode(b"", name), cdcavro.load_schema]
)
def test_unknown_format_is_refused_by_each_function(call):
    """A name nearly right is answered with the right one, any other with all there are."""
    assert error_of(call, "oms-canal") == "unknown format 'oms-canal': did you mean oms_canal?"
    assert error_of(call, "thrift") == f"unknown format 'thrift': known are {', '.join(cdcavro.FORMATS)}"
    assert error_of(call, None).startswith("unknown format 'None': known are ")
    assert error_of(call, ["oms_canal"]).startswith("unknown format ")


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        *[("a", "'a'"), ("it's", '"it\'s"'), ("é\n\0", r"'é\n\x00'"), (1.5, "'1.5'"), ("金额\u3164", r"'金额\u3164'")],
        *[
            ("\\u3164", r"'\\u3164'"),
            ("\u0301a\u202e", r"'\u0301a\u202e'"),
            ("e\u0301", r"'e\u0301'"),
            ("\ud800", r"'\ud800'"),
        ],
        # The first letter of `id` is Cyrillic, and so are all but the first of the next one.
        *[("\u0456d", r"'\u0456d'"), ("c\u0443\u043c\u043c\u0430_usd", "'c\\u0443\u043c\u043c\\u0430_usd'")],
        ("\n\u0441\u0430\u0445\u0430\u0440", "'\\n\u0441\u0430\u0445\u0430\u0440'"),
    ],
)
def test_value_is_shown_with_nothing_hidden(value, sentence):
    """A value of a message is read in its script, looks like no other, and cannot break a line, a terminal or a log."""
    assert shown(value) == sentence


def test_value_is_shown_bounded():
    """80 characters are shown, and that there are more."""
    assert shown("x" * 80) == f"'{'x' * 80}'"
    assert shown("x" * 81) == f"'{'x' * 80}...'"
    assert len(shown("\0" * _MEGABYTE)) == 80 * 4 + 5


@pytest.mark.parametrize(
    ("pointer", "path"),
    [
        ("", "$"),
        ("/a", "$.a"),
        ("/", '$[""]'),
        ("/a/0/b c", '$.a[0]["b c"]'),
        ("/~0~1", '$["~/"]'),
        ("/~01", '$["~1"]'),
        ('/"', '$["\\""]'),
        ("/it's", '$["it\'s"]'),
        ("/\n", '$["\\n"]'),
        ("/金额", '$["金额"]'),
        ("/e\u0301", r'$["e\u0301"]'),
        ("/\0\x7f\x85\U000e0001", r'$["\u0000\u007f\u0085\udb40\udc01"]'),
        ("/\u202e\\u202e", r'$["\u202e\\u202e"]'),
        ("/" + "n" * 100, f'$["{"n" * 80}..."]'),
        ("/a" * 200, "$" + ".a" * 128 + "..."),
    ],
)
def test_pointer_as_a_path(pointer, path):
    """A path is a JSON path in which nothing is hidden, its length bounded."""
    assert json_path(pointer) == path


@pytest.mark.parametrize(
    "fault",
    [
        lambda name: cdcavro.encode(f'{{"type":"X","data":[{{"{name}":1,"{name}":2}}]}}', "oms_canal"),
        lambda name: cdcavro.encode(f'{{"type":"X","sqlType":{{"{name}":[]}}}}', "oms_canal"),
        lambda name: cdcavro.encode(f'{{"type":"X","es":"{name}"}}', "oms_canal"),
        lambda name: cdcavro.encode(f'{{"type":"X","{name}":{{"{name}":"\\ud800"}}}}', "oms_canal"),
        lambda name: cdcavro.encode(name, "oms_canal"),
        lambda name: cdcavro.encode("{}", name),
        lambda name: cdcavro.sniff(f'{{"{name}":1}}'),
        lambda name: cdcavro.sniff("[" + ",".join(f'"{name[:1000]}"' for _ in range(100)) + "]"),
        lambda name: cdcavro.parse_schema(f'{{"type":"{name}"}}'),
        lambda name: cdcavro.parse_schema(f'{{"type":"enum","name":"E","symbols":["a-{name}"]}}'),
        lambda name: cdcavro.parse_schema(f'{{"type":"fixed","name":"a.{name}","size":-1}}'),
        lambda name: cdcavro.parse_schema(f'{{"type":"record","name":"R","fields":[{{"name":"a","type":"x{name}"}}]}}'),
    ],
)
@pytest.mark.parametrize("name", ["n" * _MEGABYTE, "\U0001f600" * (_MEGABYTE // 4), "ab/~ " * (_MEGABYTE // 5)])
@pytest.mark.slow
def test_megabyte_name_does_not_blow_up_a_sentence(fault, name):
    """However long the names of a message or schema are, an error is a short sentence that hides nothing, soon."""
    sentence = error_of(fault, name)
    assert len(sentence) < 2_500
    assert visible(sentence) == sentence


UNSEEN = [
    *("\u3164", "\u115f", "\u1160", "\uffa0", "\u2800", "\ufe0f", "\ufe00", "\U000e0100", "\U000e0041", "\u00ad"),
    *("\u034f", "\u17b4", "\u180b", "\u180e", "\u200b", "\u200d", "\u2060", "\u2062", "\ufeff", "\u061c"),
    *("\u202a", "\u202e", "\u2066", "\u2069", "\u200f", "\u2028", "\u00a0", "\u3000", "\ufffc", "\U0001d159"),
    *("\x00", "\x1b", "\x9b", "\ud800", "\ue000", "\U0001107f", "\U00016fe4"),
]


@pytest.mark.parametrize("one", UNSEEN, ids=ascii)
@pytest.mark.parametrize("form", ["orders{}", "{}orders", "ord{}ers", "{}"])
def test_what_shows_nothing_is_escaped(one, form):
    """A name with it would look like another one."""
    name = form.format(one)
    escaped = ascii(one)[1:-1]
    assert visible(name) == form.format(escaped)
    assert plain(name) == ascii(name)
    errors = [
        cdcavro.FileError(name, "a file", "none"),
        cdcavro.FileError("a", "a file", name),
        cdcavro.SchemaError(name, name),
        cdcavro.JobError(f"the table {name} is gone"),
        cdcavro.RegistryError(f"https://x/{name}", name),
        cdcavro.UnknownSchemaError("file:x", name),
        cdcavro.IncompatibleError("s", "BACKWARD", [name]),
        cdcavro.MessageError("a", shown(name), pointer=f"/{name}"),
        cdcavro.OrderError("canal", name),
        cdcavro.UnknownFormatError(name, ["canal"]),
    ]
    for error in errors:
        assert isinstance(error, CdcAvroError)
        assert one not in str(error)
        assert escaped in str(error)


def test_marks_in_piles_and_those_of_no_letter_are_escaped():
    """As many as scripts have stay; what another text looks like, in Unicode's normal form, is told from it."""
    assert visible("o" + "\u0336" * 9) == "o" + "\u0336" * 3 + "\\u0336" * 6
    assert visible("\u0336a '\u0336b") == "\\u0336a '\\u0336b"
    assert visible("a\u200b\u0336") == "a\\u200b\\u0336"
    for text in ("caf\u00e9", "\u0451\u0436", "\uac00\ub098", "\u00c5", "\u1eab"):
        other = unicodedata.normalize("NFD", text)
        assert visible(text) == text == plain(text)
        assert other == text or visible(other) != text
        assert other == text or visible(other).isascii() or "\\u" in visible(other)
    assert visible("\u212a\u212b\u2126") == "\\u212a\\u212b\\u2126"
    assert visible_lines("a\nb\u3164\n") == "a\nb\\u3164\n"
    assert [plain(name) for name in ("a", "a ", " a", "a b", "")] == ["a", "'a '", "' a'", "a b", "''"]


@pytest.mark.parametrize(
    "text",
    [
        "\u8ba2\u5355\u8868",  # Chinese
        "\u6ce8\u6587\u30c6\u30fc\u30d6\u30eb",  # Japanese
        "\uc8fc\ubb38",  # Korean
        "\u0917\u094d\u0930\u093e\u0939\u0915",  # Hindi
        "\u0e04\u0e33\u0e2a\u0e31\u0e48\u0e07\u0e0b\u0e37\u0e49\u0e2d",  # Thai
        "\u0637\u0644\u0628\u0627\u062a",  # Arabic
        "\u05e9\u05c1\u05b8\u05dc\u05d5\u05b9\u05dd",  # Hebrew
        "\u0437\u0430\u043a\u0430\u0437\u044b, \u0441\u0430\u0445\u0430\u0440_usd",  # Russian
        "\u0394t \u03bf \u03bd\u03ad\u03bf\u03c2",  # Greek
        "\u0111\u01a1n h\u00e0ng",  # Vietnamese
        "Bestellungen \u00e4\u00f6\u00fc\u00df \u20ac",
    ],
)
def test_names_in_any_script_are_shown_as_they_are(text):
    """In the form that keyboards write."""
    normal = unicodedata.normalize("NFC", text)
    assert visible(normal) == normal == plain(normal)
