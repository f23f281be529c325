from cdcavro.columns.numbers cimport number_text
from cdcavro.instants cimport from_local, to_local
