"""Messages straight to typed tables, on Spark."""
