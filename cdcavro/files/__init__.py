"""Files of messages: their lines, chunks and rejects, and the processes that share the work."""
