"""Payloads of a table's versions, read under one of them."""
