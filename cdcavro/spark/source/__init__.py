"""Files of JSON lines on Spark: the data source `cdcavro`, by Spark's Python API, and frames of raw lines."""
