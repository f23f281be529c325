"""Declarative pipelines on the data source: the project of the page runs, and keeps its tables in step."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyspark
import pytest

import cdcavro
from cdcavro.spark.session import coordinate
from support.messages import SAMPLES, shop_debezium
from support.pages import DOCS, blocks, commands, console_output

PAGE = DOCS / "how-to" / "declarative-pipelines.md"
IS_NEW = tuple(map(int, version("pyspark").split(".")[:2])) >= (4, 1)


def project(folder: Path) -> Path:
    """Make the project that the page shows."""
    for block in blocks(PAGE):
        for command in commands(block.text) if block.language == "console" else ():
            code, said = console_output(f"cd {folder}\n{command.text}")
            assert (code, said) == (0, "")
    return folder / "shop"


def run_pipeline(folder: Path) -> None:
    """Run a pipeline as its users do."""
    home = Path(pyspark.__file__).parent
    paths = [str(Path(cdcavro.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    own = {
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": str(home),
    }
    command = ["bash", str(home / "bin" / "spark-pipelines"), "run", "--packages", coordinate()]
    done = subprocess.run(command, cwd=folder, env=os.environ | own, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def table(spark: Any, folder: Path, name: str) -> Any:
    """Return a table that the pipeline made."""
    return spark.read.parquet(f"{folder}/spark-warehouse/{name}")


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.skipif(not IS_NEW, reason="pipelines came with Spark 4.1")
def test_the_pipeline_of_the_page_runs(spark, tmp_path):
    """Each line is in its table, rejects in theirs, and the changes of a table have what AutoCDC asks for."""
    pytest.importorskip("grpc", reason="spark-pipelines speaks Spark Connect: pip install 'pyspark[pipelines]'")
    folder = project(tmp_path)
    shop = (SAMPLES / "debezium" / "shop.jsonl").read_bytes()
    (folder / "in" / "shop.jsonl").write_bytes(shop + b"{\n")
    run_pipeline(folder)
    assert table(spark, folder, "messages").count() == len(shop_debezium()) + 1
    assert [row.line for row in table(spark, folder, "rejects").collect()] == [len(shop_debezium()) + 1]
    counts = {(row["table"], row["operation"]): row["count"] for row in table(spark, folder, "kinds").collect()}
    assert sum(counts.values()) == len(shop_debezium()) + 1
    changes = table(spark, folder, "order_changes")
    assert changes.where("`order` is null or tenant is null or order_id is null").count() == 0
    last = {(row.tenant, row.order_id): (row.operation, row.qty) for row in changes.orderBy("order").collect()}
    assert last == last_orders()


def last_orders() -> dict[tuple[str, int], tuple[str, int | None]]:
    """Return of each order of the shop what was done to it last, and how many were ordered then."""
    last = {}
    for change in [change for text in shop_debezium() for change in cdcavro.to_changes(text, "debezium")]:
        if change.source.table == "orders" and change.op in ("INSERT", "UPDATE", "DELETE", "SNAPSHOT"):
            for image, op in ((change.before, "DELETE"), (change.after, change.op)):
                if image is not None:
                    last[image["tenant"], image["order_id"]] = op, image.get("qty")
    return last


def test_what_autocdc_is_told_is_what_its_view_has(tmp_path):
    """Where it cannot be run: the columns that its keys, its order and its condition name."""
    folder = project(tmp_path)
    (flow,) = [
        node
        for node in ast.walk(ast.parse((folder / "orders_on_4_2.py").read_text()))
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "create_auto_cdc_flow"
    ]
    told = {one.arg: ast.literal_eval(one.value) for one in flow.keywords}
    view = (folder / "transformations" / "orders.py").read_text()
    assert f"def {told['source']}()" in view
    assert all(f'alias("{name}")' in view for name in [*told["keys"], *told["except_column_list"]])
    assert told["sequence_by"] in told["except_column_list"]
    assert told["apply_as_deletes"] == "operation = 'DELETE'"
