"""Avro itself: schemas, binary data, container files, and whether one schema reads what another wrote. Nothing of messages."""
