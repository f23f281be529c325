from cdcavro.buffer cimport Buffer
from cdcavro.encoder cimport Encoder
from cdcavro.message_readers cimport MessageReader
from cdcavro.source cimport Payload
from cdcavro.text cimport kind, render, to_bytes
