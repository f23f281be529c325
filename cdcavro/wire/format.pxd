from cdcavro.exact.jsontext cimport kind, render, to_bytes
from cdcavro.wire.payload cimport PayloadDecoder
from cdcavro.wire.reading.messages cimport MessageReader
