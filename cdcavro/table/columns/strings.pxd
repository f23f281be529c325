from cdcavro.wire.writing.values cimport plain_text
from cdcavro.exact.jsontext cimport ExactNumber, render
