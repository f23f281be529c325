from cdcavro.change.values.canal cimport RowConverter, plain_value
from cdcavro.exact.caching cimport IdentityCache
from cdcavro.formats.oms_canal cimport changes_of
