"""Files of messages: their lines, chunks and rejects, and the threads that share the work."""
