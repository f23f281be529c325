from cdcavro.formats.oms_canal cimport changes_of
from cdcavro.exact.caching cimport Remembered
from cdcavro.change.values.canal cimport Turner, plain
