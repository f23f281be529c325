from cdcavro.scalars cimport plain_text
from cdcavro.text cimport render, same

cpdef list split_key_change(object change)
