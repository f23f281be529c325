"""A batch of messages converted: typed rows with their order, rejects, and what the driver is told."""
