"""The data source is there from Spark 4.0 on."""

from __future__ import annotations

import pyspark
from packaging.version import Version

if Version(pyspark.__version__) < Version("4.0"):
    # Its modules import what older ones do not have.
    collect_ignore_glob = ["test_*.py"]
