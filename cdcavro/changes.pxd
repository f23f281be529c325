from cdcavro.batches cimport check_repeated
from cdcavro.instants cimport check_zone
from cdcavro.text cimport render, same
