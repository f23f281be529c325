"""The parts of Debezium's messages as Kafka Connect wraps them."""
