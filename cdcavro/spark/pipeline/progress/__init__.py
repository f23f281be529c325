"""How a pipeline goes: what is left to read behind a batch, why messages were rejected, and reports of batches."""
