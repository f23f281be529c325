"""The engine: programs of schemas, run by compiled code over the bytes of messages and payloads."""
