from cdcavro.avro.buffer cimport Buffer
from cdcavro.wire.writing.fast cimport Encoder
from cdcavro.wire.reading.messages cimport MessageReader
from cdcavro.avro.decoder cimport Payload
from cdcavro.exact.jsontext cimport kind, render, to_bytes
