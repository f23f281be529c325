"""The registry of formats, in the order in which `sniff` prefers them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cdcavro.errors import UnknownFormatError
from cdcavro.formats import (
    datahub_blob,
    datahub_tuple,
    oms_canal,
    oms_dataworks,
    oms_default,
    oms_default_extend_column_type,
    oms_shareplex,
)

if TYPE_CHECKING:
    from cdcavro.format import Format

REGISTRY: Final[dict[str, Format]] = {
    "oms_default": oms_default.FORMAT,
    "oms_default_extend_column_type": oms_default_extend_column_type.FORMAT,
    "oms_canal": oms_canal.FORMAT,
    "oms_dataworks": oms_dataworks.FORMAT,
    "oms_shareplex": oms_shareplex.FORMAT,
    "datahub_blob": datahub_blob.FORMAT,
    "datahub_tuple": datahub_tuple.FORMAT,
}


def get_format(name: str) -> Format:
    """Give a format by its name. Raises `UnknownFormatError`.

    >>> get_format("oms_canal").name
    'oms_canal'
    """
    found = REGISTRY.get(name) if isinstance(name, str) else None
    if found is None:
        raise UnknownFormatError(name, REGISTRY)
    return found
