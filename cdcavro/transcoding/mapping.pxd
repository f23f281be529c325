from cdcavro.change.rows cimport check_repeated
from cdcavro.exact.diff cimport same
from cdcavro.exact.instants cimport check_zone
from cdcavro.exact.jsontext cimport render
