"""Packets of Canal as the protobuf package writes them, from descriptors made here of the protocol's fields."""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_PACKAGE = "canal.test"
_TYPES = {"int32": 5, "int64": 3, "bool": 8, "string": 9, "bytes": 12}
_FIELDS = {
    "Packet": "magic_number?:int32=1 version?:int32=2 type:PacketType=3 compression?:Compression=4 body:bytes=5",
    "Messages": "batch_id:int64=1 messages*:bytes=2",
    "Entry": "header:Header=1 entryType?:EntryType=2 storeValue:bytes=3",
    "Header": (
        "version?:int32=1 logfileName:string=2 logfileOffset:int64=3 serverId:int64=4 serverenCode:string=5 "
        "executeTime:int64=6 sourceType?:Type=7 schemaName:string=8 tableName:string=9 eventLength:int64=10 "
        "eventType?:EventType=11 props*:Pair=12 gtid:string=13"
    ),
    "RowChange": (
        "tableId:int64=1 eventType?:EventType=2 isDdl?:bool=10 sql:string=11 rowDatas*:RowData=12 props*:Pair=13 "
        "ddlSchemaName:string=14"
    ),
    "RowData": "beforeColumns*:Column=1 afterColumns*:Column=2 props*:Pair=3",
    "Column": (
        "index:int32=1 sqlType:int32=2 name:string=3 isKey:bool=4 updated:bool=5 isNull?:bool=6 props*:Pair=7 "
        "value:string=8 length:int32=9 mysqlType:string=10"
    ),
    "TransactionBegin": "executeTime:int64=1 transactionId:string=2 props*:Pair=3 threadId:int64=4",
    "TransactionEnd": "executeTime:int64=1 transactionId:string=2 props*:Pair=3",
    "Pair": "key:string=1 value:string=2",
}
_ENUMS = {
    "PacketType": (
        "PACKAGETYPECOMPATIBLEPROTO2 HANDSHAKE CLIENTAUTHENTICATION ACK SUBSCRIPTION UNSUBSCRIPTION GET MESSAGES "
        "CLIENTACK SHUTDOWN DUMP HEARTBEAT CLIENTROLLBACK"
    ),
    "Compression": "COMPRESSIONCOMPATIBLEPROTO2 NONE ZLIB GZIP LZF",
    "EntryType": "ENTRYTYPECOMPATIBLEPROTO2 TRANSACTIONBEGIN ROWDATA TRANSACTIONEND HEARTBEAT GTIDLOG",
    "EventType": (
        "EVENTTYPECOMPATIBLEPROTO2 INSERT UPDATE DELETE CREATE ALTER ERASE QUERY TRUNCATE RENAME CINDEX DINDEX GTID "
        "XACOMMIT XAROLLBACK MHEARTBEAT"
    ),
    "Type": "TYPECOMPATIBLEPROTO2 ORACLE MYSQL PGSQL",
}


def _classes() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="canal_test.proto", package=_PACKAGE, syntax="proto3")
    for name, symbols in _ENUMS.items():
        enum = file.enum_type.add(name=name)
        for number, symbol in enumerate(symbols.split()):
            # Names of values are shared by all enums of a file.
            enum.value.add(name=f"{name}_{symbol}", number=number)
    for name, fields in _FIELDS.items():
        message = file.message_type.add(name=name)
        for text in fields.split():
            head, _, number = text.partition("=")
            field, _, type = head.partition(":")
            made = message.field.add(name=field.rstrip("?*"), number=int(number), label=3 if "*" in field else 1)
            if type in _TYPES:
                made.type = _TYPES[type]
            else:
                made.type, made.type_name = (14 if type in _ENUMS else 11), f".{_PACKAGE}.{type}"
            if "?" in field:
                made.proto3_optional, made.oneof_index = True, len(message.oneof_decl)
                message.oneof_decl.add(name=f"_{made.name}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}")) for name in _FIELDS}


CLASSES = _classes()


def made(kind: str, **members: Any) -> Any:
    """Return a message of a kind; a name of an enum is that without its prefix."""
    message = CLASSES[kind]()
    for name, value in members.items():
        declared = message.DESCRIPTOR.fields_by_name[name]
        if declared.is_repeated:
            getattr(message, name).extend(value)
        elif declared.message_type is not None:
            getattr(message, name).CopyFrom(value)
        elif declared.enum_type is not None and isinstance(value, str):
            names = declared.enum_type.values_by_name
            setattr(message, name, names[f"{declared.enum_type.name}_{value}"].number)
        else:
            setattr(message, name, value)
    return message


def column(index: int, name: str, value: str | None, type: str = "varchar(10)", **members: Any) -> Any:
    """Return a column with a value; None is null."""
    stated = {"isNull": True} if value is None else {"value": value}
    return made("Column", index=index, sqlType=12, name=name, mysqlType=type, **stated, **members)


def rows(event: str, *found: Any, table: str = "t", offset: int = 4567, **header: Any) -> Any:
    """Return an entry with rows, which are messages of the kind RowData."""
    change = made("RowChange", tableId=108, eventType=event, rowDatas=found)
    return entry(offset, change, "ROWDATA", tableName=table, eventType=event, **header)


def entry(offset: int, stored: Any, type: str | None, **header: Any) -> Any:
    """Return an entry of a type with what it holds."""
    usual = {
        "version": 1,
        "logfileName": "mysql-bin.000003",
        "logfileOffset": offset,
        "serverId": 1,
        "serverenCode": "UTF-8",
        "executeTime": 1_700_000_000_000,
        "sourceType": "MYSQL",
        "schemaName": "shop",
    }
    named = {} if type is None else {"entryType": type}
    return made("Entry", header=made("Header", **usual | header), storeValue=stored.SerializeToString(), **named)


def packet(*entries: Any, batch: int = 0, **members: Any) -> bytes:
    """Return the bytes of a packet with entries."""
    body = made("Messages", batch_id=batch, messages=[one.SerializeToString() for one in entries])
    usual = {"version": 1, "type": "MESSAGES", "body": body.SerializeToString()}
    return made("Packet", **usual | members).SerializeToString()


UPDATE = rows(
    "UPDATE",
    made(
        "RowData",
        beforeColumns=[column(0, "id", "7", "int", isKey=True), column(1, "price", "1.20", "decimal(10,2)")],
        afterColumns=[
            column(0, "id", "7", "int", isKey=True),
            column(1, "price", "1.30", "decimal(10,2)", updated=True),
        ],
    ),
    props=[made("Pair", key="rowsCount", value="1")],
    gtid="281c62dc-590c-11ee-a295-00163e390c7c:7",
)
