"""Layer 1, wire: conversion of messages into payloads and back, by their wire schemas."""

from cdcavro.wire.format import Format
from cdcavro.wire.formats import get_format

__all__ = ["Format", "get_format"]
