from cdcavro.wire.writing.values cimport plain_text
from cdcavro.exact.jsontext cimport render, same

cpdef list split_key_change(object change)
