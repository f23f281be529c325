"""Messages and changes straight to typed tables, on Spark."""
