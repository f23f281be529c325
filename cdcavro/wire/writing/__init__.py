"""Writing of records or text as payloads, by a plan of small writers."""
