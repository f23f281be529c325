"""Where a pipeline's rows go beside a lake: topics of Kafka, and Avro files."""
