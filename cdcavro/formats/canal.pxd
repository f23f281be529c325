from cdcavro.formats.oms_canal cimport changes_of
from cdcavro.remembered cimport Remembered
from cdcavro.values cimport Turner, plain
