"""Files of messages: lines, chunks, rejects, and the processes that share the work."""
