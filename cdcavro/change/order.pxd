from cdcavro.exact.diff cimport same
from cdcavro.exact.jsontext cimport render
from cdcavro.exact.numbers cimport plain_text

cpdef list split_key_change(object change)
