"""Schemas that Avro Java reads and other parsers may not, and some that it refuses."""

from __future__ import annotations


def _record(*fields: str) -> str:
    return f'{{"type":"record","name":"R","fields":[{",".join(fields)}]}}'


def _default(type: str, default: str) -> str:
    return _record(f'{{"name":"a","type":{type},"default":{default}}}')


LINKED = '{"type":"record","name":"a.L","fields":[{"name":"next","type":["null","L"],"default":null}]}'
# What Avro Java reads and the specification does not allow, or only just, each with what it comes to.
LENIENT = {
    "a doc that is no text": (
        '{"type":"record","name":"R","doc":null,"fields":[]}',
        '{"type":"record","name":"R","fields":[]}',
    ),
    "a namespace that is no text": (
        '{"type":"record","name":"R","namespace":null,"fields":[{"name":"a","type":{"type":"fixed","name":"F","namespace":1,"size":1}}]}',
        '{"type":"record","name":"R","fields":[{"name":"a","type":{"type":"fixed","name":"F","size":1}}]}',
    ),
    "a namespace that is inherited, as it is no text": (
        '{"type":"record","name":"a.R","fields":[{"name":"a","type":{"type":"fixed","name":"F","namespace":null,"size":1}}]}',
        '{"type":"record","name":"a.R","fields":[{"name":"a","type":{"type":"fixed","name":"a.F","size":1}}]}',
    ),
    "a type without a namespace, used within one": (
        '{"type":"record","name":"a.R","fields":[{"name":"a","type":{"type":"fixed","name":"F","namespace":"","size":1}},{"name":"b","type":"F"}]}',
        '["null",{"type":"record","name":"a.R","fields":[{"name":"a","type":{"type":"fixed","name":"F","namespace":"","size":1}},{"name":"b","type":"F"}]}]',
    ),
    "comments, which strings do not have": (
        '// one\n{"type":/* two */"enum","name":"E","symbols":["A"],"x":"/* // */"}\n// "three',
        '{"type":"enum","name":"E","symbols":["A"]}',
    ),
    "a member given twice": ('{"type":"fixed","name":"F","size":1,"size":2}', '{"type":"fixed","name":"F","size":2}'),
    "letters of other scripts": (
        '{"type":"enum","name":"Größe_1","symbols":["日"]}',
        None,
    ),
    "an error of a protocol": ('{"type":"error","name":"E","fields":[]}', '{"type":"record","name":"E","fields":[]}'),
    "a name as an object": (
        '{"type":"record","name":"R","fields":[{"name":"a","type":{"type":"fixed","name":"F","size":1}},{"name":"b","type":{"type":"F"}}]}',
        None,
    ),
    "a type used before it is defined": (
        '{"type":"record","name":"R","fields":[{"name":"a","type":"F"},{"name":"b","type":{"type":"fixed","name":"F","size":1}}]}',
        '{"type":"record","name":"R","fields":[{"name":"a","type":{"type":"fixed","name":"F","size":1}},{"name":"b","type":"F"}]}',
    ),
    "an enum without symbols": ('{"type":"enum","name":"E","symbols":[]}', None),
    "a union without branches": ("[]", None),
    "an order in capitals": (_record('{"name":"a","type":"int","order":"Ignore"}'), None),
    "an alias that is the field's own name": (_record('{"name":"a","type":"int","aliases":["a"]}'), None),
    "an alias that is another field's name": (
        _record('{"name":"a","type":"int"}', '{"name":"b","type":"int","aliases":["a"]}'),
        None,
    ),
    "aliases that are no names": (
        '{"type":"record","name":"R","aliases":["7.S",".T"],"fields":[{"name":"a","type":"int","aliases":["b c"]}]}',
        None,
    ),
    "a default of a later branch": (_default('["null","int"]', "1"), None),
    "a number as text": (_default('"float"', '"NaN"'), None),
    "a number beyond all doubles": (_default('"double"', "1e999"), None),
    "bytes of other characters": (_default('"bytes"', '"\\u0100"'), None),
    "a default of another size": (_default('{"type":"fixed","name":"F","size":2}', '"abc"'), None),
    "a default that is no symbol": (_default('{"type":"enum","name":"E","symbols":["A"]}', '"B"'), None),
    "a record that contains itself": (LINKED, None),
    "records that contain each other": (
        '{"type":"record","name":"A","fields":[{"name":"b","type":{"type":"array","items":{"type":"record","name":"B","fields":[{"name":"a","type":{"type":"map","values":"A"}}]}}}]}',
        None,
    ),
    "a record of which there are no data": (_record('{"name":"a","type":"R"}'), None),
}
# What Avro Java 1.12 refuses, and so every reader of Spark's: Avro Java 1.8.2 does not look at these places.
REFUSED_SINCE = {
    "a default that is no value at all": _default('"int"', '"x"'),
    "a default without a field": _default('{"type":"record","name":"S","fields":[{"name":"x","type":"int"}]}', "{}"),
    "a default that never ends": _record('{"name":"a","type":"R","default":{}}'),
    "an enum's default that is no symbol": '{"type":"enum","name":"E","symbols":["A"],"default":"B"}',
    "a comment without an end": '"int" /* open',
    "text behind the schema": '"int" "long"',
    "a namespace of other characters": '{"type":"fixed","name":"F","namespace":"a-b","size":1}',
}
# What both refuse.
REFUSED = {
    "an order that is none": _record('{"name":"a","type":"int","order":"sideways"}'),
    "an order that is null": _record('{"name":"a","type":"int","order":null}'),
    "a name of other characters": '{"type":"fixed","name":"a-b","size":1}',
    "a symbol given twice": '{"type":"enum","name":"E","symbols":["A","A"]}',
    "a field given twice": _record('{"name":"a","type":"int"}', '{"name":"a","type":"int"}'),
    "a type defined twice": _record('{"name":"a","type":{"type":"fixed","name":"R","size":1}}'),
    "a name that nobody defines": _record('{"name":"a","type":"S"}'),
    "a union in a union": '["int",["null"]]',
    "a union with a type twice": '["int","int"]',
    "aliases that are no list": '{"type":"fixed","name":"F","size":1,"aliases":"G"}',
    "an alias of other characters": '{"type":"fixed","name":"F","size":1,"aliases":["a b"]}',
    "a type within a type": '{"type":{"type":"int"}}',
}
