from cdcavro.exact.instants cimport from_local, to_local
from cdcavro.table.columns.numbers cimport number_text
