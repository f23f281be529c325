"""Reading of the local runner: files and topics, and how far it has come, in the checkpoint of Spark."""
