"""The local runner of a pipeline: one process, without Java and without Spark."""

from cdcavro.lake.lakes import DeltaLake, IcebergLake
from cdcavro.sync.batches import BatchReport
from cdcavro.sync.local.local_runner import Pipeline
from cdcavro.sync.outputs.sink_settings import AvroFiles, KafkaTopics, LakeSettings
from cdcavro.sync.protection import Constant, RowRule
from cdcavro.sync.settings import Chosen, Formats, RegistrySettings, Settings
from cdcavro.sync.sources import Files, Kafka

__all__ = [
    "AvroFiles",
    "BatchReport",
    "Chosen",
    "Constant",
    "DeltaLake",
    "Files",
    "Formats",
    "IcebergLake",
    "Kafka",
    "KafkaTopics",
    "LakeSettings",
    "Pipeline",
    "RegistrySettings",
    "RowRule",
    "Settings",
]
