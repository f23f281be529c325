from cdcavro.exact.instants cimport from_local, to_local
from cdcavro.exact.numbers cimport number_text
