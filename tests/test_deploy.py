"""The files in `deploy/`: what they start is what the command line takes, and what they configure is a pipeline.

Their validators run in `tox -e lint`; no image is built here.
"""

from __future__ import annotations

import ast
import re
import tomllib

import pytest

from cdcavro.avro import binary
from cdcavro.cli import main
from cdcavro.cli.options import stated_settings
from cdcavro.exact import jsontext
from cdcavro.sync.config import read_config
from reference import sources
from support.places import ROOT

yaml = pytest.importorskip("yaml", reason="PyYAML comes with the group connect")

DEPLOY = ROOT / "deploy"
DOCKERFILE = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
PINNED = dict(
    line.split("==") for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines() if "==" in line
)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def documents(name):
    """The documents of a file of YAML, by kind; that of Compose has none."""
    return {one.get("kind"): one for one in yaml.safe_load_all((DEPLOY / name).read_text(encoding="utf-8"))}


def stage(name):
    """The text of a stage of the Dockerfile."""
    return re.search(rf"^FROM \S+ AS {name}\n(.*?)(?=^FROM |\Z)", DOCKERFILE, re.DOTALL | re.MULTILINE)[1]


def instruction(name, word):
    """What stands behind an instruction that a stage has once."""
    (found,) = re.findall(rf"^{word} (.*)$", stage(name), re.MULTILINE)
    return found


COMPOSE = documents("compose.yaml")[None]["services"]
KUBERNETES, SPARK = documents("kubernetes.yaml"), documents("spark-application.yaml")
POD = KUBERNETES["StatefulSet"]["spec"]["template"]["spec"]
(CONTAINER,) = POD["containers"]
APPLICATION = SPARK["SparkApplication"]["spec"]


def configured(config_map, tmp_path):
    """The configuration that a ConfigMap holds, read as the command reads it."""
    file = tmp_path / "sync.toml"
    file.write_text(config_map["data"]["sync.toml"], encoding="utf-8")
    return read_config(file)


def flags_of(arguments):
    """What the command line makes of arguments, of which the first is a command."""
    command = main.commands[arguments[0]]
    with command.make_context(arguments[0], arguments[1:], resilient_parsing=False) as context:
        return context.params


@pytest.fixture
def _file_there(monkeypatch):
    """Options that name a configuration are checked for it: it is mounted in the container only."""
    monkeypatch.setattr("click.Path.convert", lambda _self, value, _param, _ctx: value)


def test_the_pipeline_of_compose_is_one_that_the_options_say():
    """It reads the topic that is made for it, writes into the volume, and is asked for its health where it listens."""
    pipeline = COMPOSE["pipeline"]
    config = read_config(None, stated_settings(flags_of(pipeline["command"])))
    assert config.run == "local"
    config.pipeline("the options")
    assert config.source.topics == [COMPOSE["topic"]["command"][COMPOSE["topic"]["command"].index("--topic") + 1]]
    assert COMPOSE["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"] == f"PLAINTEXT://{config.source.kafka}"
    (mount,) = [one.split(":")[1] for one in pipeline["volumes"]]
    assert {config.state, config.lake.delta} == {f"{mount}/state", f"{mount}/lake"}
    assert f":{config.metrics.address[1]}/healthz" in pipeline["healthcheck"]["test"][-1]
    assert pipeline["ports"] == [f"127.0.0.1:{config.metrics.address[1]}:{config.metrics.address[1]}"]


@pytest.mark.usefixtures("_file_there")
@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(CONTAINER["args"], id="Kubernetes"),
        pytest.param(APPLICATION["arguments"], id="Spark"),
        pytest.param(yaml.safe_load(instruction("local", "CMD")), id="Dockerfile"),
    ],
)
def test_a_container_runs_the_configuration_that_is_mounted(arguments):
    """Whatever else it is given, the command has it."""
    assert flags_of(arguments)["config"] == "/etc/cdcavro/sync.toml"


def test_the_pipeline_of_kubernetes_keeps_all_it_writes_in_its_volume(tmp_path, monkeypatch):
    """Its configuration is one for a process without Spark; its variables are in the Secret, and health is asked for."""
    monkeypatch.setenv("KAFKA_LOGIN", "a login")
    config = configured(KUBERNETES["ConfigMap"], tmp_path)
    assert config.run == "local"
    config.pipeline("sync.toml")
    mounts = {one["name"]: one["mountPath"] for one in CONTAINER["volumeMounts"]}
    assert {config.state, config.lake.delta} == {f"{mounts['data']}/state", f"{mounts['data']}/lake"}
    assert CONTAINER["envFrom"] == [{"secretRef": {"name": "cdcavro"}}]
    ports = {one["name"]: one["containerPort"] for one in CONTAINER["ports"]}
    probe = CONTAINER["readinessProbe"]["httpGet"]
    assert (ports[probe["port"]], probe["path"]) == (config.metrics.address[1], "/healthz")
    assert "livenessProbe" not in CONTAINER
    assert KUBERNETES["StatefulSet"]["spec"]["replicas"] == 1
    (service,) = KUBERNETES["Service"]["spec"]["ports"]
    assert service["port"] == config.metrics.address[1]


def test_the_pipeline_on_spark_has_its_state_where_all_machines_see_it(tmp_path):
    """Driver and executors mount one volume under one path, in which state and lake are."""
    config = configured(SPARK["ConfigMap"], tmp_path)
    assert config.run == "spark"
    config.pipeline("sync.toml")
    assert SPARK["PersistentVolumeClaim"]["spec"]["accessModes"] == ["ReadWriteMany"]
    for part in ("driver", "executor"):
        mounts = {one["name"]: one["mountPath"] for one in APPLICATION[part]["volumeMounts"]}
        assert {config.state, config.lake.delta} == {f"{mounts['data']}/state", f"{mounts['data']}/lake"}


def test_spark_has_the_packages_and_the_bounds_that_the_job_asks_for():
    """Those of the Spark in the image, which is the one that the tests run with."""
    spark = PINNED["pyspark"]
    bounds = eval(sources.assigned("cdcavro.spark.session", "_LIMITS"), {"jsontext": jsontext, "binary": binary})
    assert APPLICATION["sparkVersion"] == spark
    delta, _ = ast.literal_eval(sources.assigned("cdcavro.spark.lake.sinks", "_PACKAGES"))[spark.rpartition(".")[0]]
    parts = ["spark-avro_2.13", "spark-sql-kafka-0-10_2.13"]
    assert APPLICATION["deps"]["packages"] == [*(f"org.apache.spark:{part}:{spark}" for part in parts), delta]
    for part in ("driver", "executor"):
        assert APPLICATION[part]["javaOptions"].split() == [f"-D{name}={value}" for name, value in bounds.items()]


def test_the_images_have_the_users_that_the_manifests_name():
    """No container runs as root, and each may write into its volume."""
    for name, contexts in {
        "local": [POD["securityContext"]],
        "spark": [APPLICATION[part]["securityContext"] for part in ("driver", "executor")],
    }.items():
        user = instruction(name, "USER")
        assert [(one["runAsUser"], one["runAsNonRoot"]) for one in contexts] == [(int(user), True)] * len(contexts)
        (called,) = re.findall(rf"useradd --uid {user} --gid {user} (?:--create-home )?(\w+) ", stage(name))
        assert f"install -d -o {called} -g {called} /data\n" in stage(name)


def test_the_images_are_made_of_what_there_is():
    """Paths that are copied are there, extras exist, and Spark's script is that of the Spark that is installed."""
    copied = [path for line in re.findall(r"^COPY (?!--)(.*) \S+$", DOCKERFILE, re.MULTILINE) for path in line.split()]
    assert len(copied) > 5
    assert [path for path in copied if not (ROOT / path).exists()] == []
    extras = {one for line in re.findall(r"\$\{wheel\}\[([a-z,]+)\]", DOCKERFILE) for one in line.split(",")}
    assert extras <= set(PROJECT["project"]["optional-dependencies"])
    assert f"COPY --from=spark:{PINNED['pyspark']}-scala2.13-java17-ubuntu /opt/entrypoint.sh" in DOCKERFILE
    assert APPLICATION["mainApplicationFile"] == "local:///opt/cdcavro/job.py"
    assert COMPOSE["pipeline"]["build"]["target"] == "local"
