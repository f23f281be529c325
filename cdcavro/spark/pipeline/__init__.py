"""The pipeline: from topics and files to lake tables, to other topics or to Avro files."""

from cdcavro.spark.pipeline.batches import BatchReport
from cdcavro.spark.pipeline.outputs.avro_files import AvroFiles
from cdcavro.spark.pipeline.outputs.kafka_topics import KafkaTopics
from cdcavro.spark.pipeline.outputs.lake_tables import LakeSettings
from cdcavro.spark.pipeline.pipeline import Pipeline
from cdcavro.spark.pipeline.settings import Chosen, Formats, RegistrySettings, Settings
from cdcavro.spark.pipeline.sources import Files, Kafka

__all__ = [
    "AvroFiles",
    "BatchReport",
    "Chosen",
    "Files",
    "Formats",
    "Kafka",
    "KafkaTopics",
    "LakeSettings",
    "Pipeline",
    "RegistrySettings",
    "Settings",
]
