"""The parts of Debezium's messages, which Kafka Connect wraps."""
