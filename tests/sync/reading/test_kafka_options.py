"""Options of Spark's source of Kafka and patterns of topics, as far as they mean something without Java."""

from __future__ import annotations

import pytest

from cdcavro.errors import JobError
from cdcavro.sync.reading.brokers import client_options, secrets_in, topic_pattern

PASSWORD = 'hunter2 "behind" seals'
QUOTED = PASSWORD.replace('"', '\\"')
PLAIN = f'org.apache.kafka.common.security.plain.PlainLoginModule required username="me" password="{QUOTED}";'
SCRAM = f"""org.apache.kafka.common.security.scram.ScramLoginModule required
  username=me
  password='{PASSWORD}' tokenauth=true ;"""
JAAS = "kafka.sasl.jaas.config"


@pytest.mark.parametrize("login", [PLAIN, SCRAM])
def test_logins_by_password(login):
    """Logins by password."""
    options = {"kafka.security.protocol": "SASL_SSL", "kafka.sasl.mechanism": "SCRAM-SHA-512", JAAS: login}
    assert client_options(options) == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanisms": "SCRAM-SHA-512",
        "sasl.username": "me",
        "sasl.password": PASSWORD,
    }
    assert PASSWORD in secrets_in(client_options(options))


@pytest.mark.parametrize(
    ("login", "said"),
    [
        (
            "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true keyTab='/a' principal='p@R';",
            "Krb5LoginModule",
        ),
        (
            "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required clientSecret='secret';",
            "OAuthBearer",
        ),
        ("PlainLoginModule required username=me;", "no username and password"),
        ("secret", "not a login"),
        ("PlainLoginModule required username=me password=secret", "not a login"),
        ("PlainLoginModule required username=me password=secret; PlainLoginModule required;", "not a login"),
    ],
)
def test_logins_that_need_java(login, said):
    """Logins that need Java."""
    with pytest.raises(JobError, match=said) as raised:
        client_options({JAAS: login})
    assert "secret" not in str(raised.value)


def test_names_of_librdkafka():
    """Names of librdKafka."""
    options = {
        "kafka.request.timeout.ms": "5000",
        "kafka.fetch.max.wait.ms": "9",
        "kafka.client.id": "c",
        "Kafka.Max.Poll.Records": "9",
    }
    assert client_options(options) == {"socket.timeout.ms": "5000", "fetch.wait.max.ms": "9", "client.id": "c"}


def test_settings_of_spark_itself():
    """Settings of Spark itself."""
    options = {
        "startingOffsets": "latest",
        "maxOffsetsPerTrigger": "9",
        "fetchOffset.numRetries": "2",
        "groupIdPrefix": "g",
    }
    assert client_options(options) == {}


@pytest.mark.parametrize(
    "name",
    [
        "startingTimestamp",
        "minOffsetsPerTrigger",
        "kafka.sasl.login.callback.handler.class",
        "kafka.ssl.engine.factory.class",
        "kafka.auto.offset.reset",
        "kafka.enable.auto.commit",
    ],
)
def test_options_that_need_spark(name):
    """Options that need Spark."""
    with pytest.raises(JobError, match=name) as raised:
        client_options({name: "a value"})
    assert "a value" not in str(raised.value)


def test_stores_of_keys_and_certificates(tmp_path):
    """Stores of keys and certificates."""
    store = tmp_path / "store"
    store.touch()
    trust = {"kafka.ssl.truststore.type": "PEM", "kafka.ssl.truststore.location": str(store)}
    keys = {"kafka.ssl.keystore.type": "PEM", "kafka.ssl.keystore.location": str(store), "kafka.ssl.key.password": "p"}
    assert client_options({**trust, **keys, "kafka.ssl.endpoint.identification.algorithm": ""}) == {
        "ssl.ca.location": str(store),
        "ssl.certificate.location": str(store),
        "ssl.key.location": str(store),
        "ssl.key.password": "p",
        "ssl.endpoint.identification.algorithm": "none",
    }
    keys |= {"kafka.ssl.keystore.type": "PKCS12", "kafka.ssl.keystore.password": "p"}
    assert client_options(keys)["ssl.keystore.password"] == "p"
    assert client_options({"kafka.ssl.truststore.certificates": "PEM"}) == {"ssl.ca.pem": "PEM"}


@pytest.mark.parametrize("store", ["truststore", "keystore"])
def test_stores_of_java(tmp_path, store):
    """Stores of Java."""
    (tmp_path / "store").touch()
    with pytest.raises(JobError, match=f"ssl.{store}.location is a store of type JKS, which needs Java"):
        client_options({f"kafka.ssl.{store}.location": str(tmp_path / "store")})
    with pytest.raises(JobError, match="is not there"):
        client_options({f"kafka.ssl.{store}.location": "/nothing"})


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("shop[.].*", ["shop.a", "shop.b.c"]),
        ("shop", []),
        (r"\Qshop.\E.", ["shop.a"]),
        (r"\Qshop.a", ["shop.a"]),
        (r"(?i)SHOP\.A", ["shop.a"]),
        (r"(?<db>shop)\.(?!b).*", ["shop.a"]),
        (r"(?<one>.)\k<one>.*", ["aab"]),
        (r"(?:shop|other)\.[a-b]", ["shop.a"]),
        (r"[^.]+", ["aab", "shops"]),
        (r"\w++", ["aab", "shops"]),
        (r"[\]\[\w]+", ["aab", "shops"]),
    ],
)
def test_patterns_of_java(pattern, names):
    """Patterns of Java."""
    matches = topic_pattern(pattern)
    assert [name for name in ("aab", "shop.a", "shop.b.c", "shops") if matches(name)] == names


@pytest.mark.parametrize(
    "pattern",
    [
        r"\p{Lower}+",
        r"\P{L}",
        r"a\h",
        "[a-z&&[^b]]",
        "[a[b]]",
        "a(?i)b",
        "(?i:a)",
        r"a\z",
        r"\Aa\Z",
        "(?P<a>b)",
        "(?u)a",
    ],
)
def test_patterns_that_mean_something_else_in_python(pattern):
    """Patterns that mean something else in Python."""
    with pytest.raises(JobError, match="Python reads differently from Java"):
        topic_pattern(pattern)


@pytest.mark.parametrize("pattern", ["(", "[", "*", "a{2,1}", r"(?<=a+)b", "\\"])
def test_patterns_that_are_none(pattern):
    """Patterns that are none."""
    with pytest.raises(JobError, match="is invalid"):
        topic_pattern(pattern)
