"""OMS Community Edition, Default serialization (`avsc/oms_default.avsc`).

Source: OMS data formats, "Default JSON message format".

* Images stand beside each other in `prevStruct` and `postStruct`; the absent one is null, not left out.
* `recordType` is ROW for a row of a full load, and DDL without saying which kind: `postStruct.ddl` holds the statement.
* Times are seconds since the epoch, as strings.
* `storeDataSequence`, `timestamp` and `uniqueId` come in the incremental phase only.
* Binary values are base64; DECIMAL and 64-bit values are JSON numbers of any length.
"""

from cdcavro.format import Format

FORMAT = Format("oms_default")
