from cdcavro.change.values.canal cimport Turner, plain
from cdcavro.exact.caching cimport Remembered
from cdcavro.formats.oms_canal cimport changes_of
