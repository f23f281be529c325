"""The registry of formats, in the order in which `sniff` prefers them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cdcavro.errors import UnknownFormatError
from cdcavro.formats import (
    canal,
    datahub_blob,
    datahub_tuple,
    debezium,
    oms_canal,
    oms_dataworks,
    oms_default,
    oms_default_extend_column_type,
    oms_shareplex,
)

if TYPE_CHECKING:
    from types import ModuleType

    from cdcavro.wire.format import Format

MODULES: Final[dict[str, ModuleType]] = {
    "oms_default": oms_default,
    "oms_default_extend_column_type": oms_default_extend_column_type,
    "oms_canal": oms_canal,
    "canal": canal,
    "oms_dataworks": oms_dataworks,
    "oms_shareplex": oms_shareplex,
    "datahub_blob": datahub_blob,
    "datahub_tuple": datahub_tuple,
    "debezium": debezium,
}
REGISTRY: Final[dict[str, Format]] = {name: module.FORMAT for name, module in MODULES.items()}


def get_format(name: str) -> Format:
    """Give a format by its name. Raises `UnknownFormatError`.

    >>> get_format("oms_canal").name
    'oms_canal'
    """
    found = REGISTRY.get(name) if isinstance(name, str) else None
    if found is None:
        raise UnknownFormatError(name, REGISTRY)
    return found
