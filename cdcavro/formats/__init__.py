"""The bridges between each format's records and changes, one module for each format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cdcavro.formats import (
    aws_dms,
    canal,
    canal_codec,
    canal_protobuf,
    datahub_blob,
    datahub_tuple,
    debezium,
    debezium_flat,
    dts_avro,
    goldengate,
    goldengate_row,
    goldengate_tx,
    maxwell,
    oms_canal,
    oms_dataworks,
    oms_default,
    oms_default_extend_column_type,
    oms_shareplex,
)
from cdcavro.wire.format import CODECS

if TYPE_CHECKING:
    from cdcavro.formats.bridge import Bridge

BRIDGES: Final[dict[str, Bridge]] = {
    module.FORMAT: module.BRIDGE
    for module in (
        oms_default,
        oms_default_extend_column_type,
        oms_canal,
        canal,
        oms_dataworks,
        oms_shareplex,
        datahub_blob,
        datahub_tuple,
        debezium,
        maxwell,
        goldengate_row,
        goldengate,
        debezium_flat,
        aws_dms,
        dts_avro,
        canal_protobuf,
        goldengate_tx,
    )
}
CODECS.update(
    {
        dts_avro.FORMAT: dts_avro.CODEC,
        canal_protobuf.FORMAT: canal_codec.CODEC,
        goldengate_tx.FORMAT: goldengate_tx.CODEC,
    }
)
