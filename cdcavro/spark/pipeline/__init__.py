"""The pipeline on Spark: from topics and files to lake tables, to other topics or to Avro files."""

from cdcavro.spark.pipeline.batch_progress import QueryMetrics
from cdcavro.spark.pipeline.runner import Pipeline
from cdcavro.sync.batches import BatchReport
from cdcavro.sync.outputs.sink_settings import AvroFiles, KafkaTopics, LakeSettings
from cdcavro.sync.protection import Constant, RowRule
from cdcavro.sync.settings import Chosen, Formats, RegistrySettings, Settings
from cdcavro.sync.sources import Files, Kafka

__all__ = [
    "AvroFiles",
    "BatchReport",
    "Chosen",
    "Constant",
    "Files",
    "Formats",
    "Kafka",
    "KafkaTopics",
    "LakeSettings",
    "Pipeline",
    "QueryMetrics",
    "RegistrySettings",
    "RowRule",
    "Settings",
]
