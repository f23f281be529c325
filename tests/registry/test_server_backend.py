"""A server that refuses, fails, is slow, or answers what is no answer: one sentence each, and never a secret."""

from __future__ import annotations

import base64
import json
import logging
import socket
import ssl
import subprocess
import sys
import time
import traceback
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import quote
from uuid import UUID

import certifi
import pytest

import cdcavro
from cdcavro import registry
from cdcavro.registry.http_session import tls_context
from support.faulty_server import Answer, serving
from support.roundtrip import error_of
from support.transforms import TRANSFORMS

pytestmark = pytest.mark.slow

CANARY = "c4n@ry pa:ss/wörd"
AUTH = ("u$er", CANARY)
_USERINFO = base64.b64encode(":".join(AUTH).encode()).decode()
SECRETS = (*(transform(CANARY) for transform in TRANSFORMS.values()), quote(CANARY), _USERINFO, "c4n", "YzRu", "63346e")
INT = {"schema": '"int"'}
LATEST = INT | {"id": 1, "subject": "s", "version": 1}


def refusal_fields(status, message="no", code=None):
    """Return the answer of a server that refuses."""
    return Answer(status, {"error_code": status * 100 + 1 if code is None else code, "message": message})


@pytest.fixture(autouse=True)
def waits(monkeypatch):
    """The seconds that were waited between attempts; nobody waits for them."""
    waited: list[float] = []
    monkeypatch.setattr("cdcavro.registry.http_session.Session.__init__.__defaults__", (waited.append,))
    return waited


@pytest.fixture(scope="session")
def certificate(tmp_path_factory) -> tuple[str, str]:
    """A certificate for 127.0.0.1 that nobody vouches for, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    files = str(folder / "cert.pem"), str(folder / "key.pem")
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "2",
    ]
    more = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-out", files[0], "-keyout", files[1]]
    subprocess.run([*command, *more], check=True, capture_output=True)
    return files


@pytest.fixture(autouse=True)
def few_authorities(monkeypatch, tmp_path_factory):
    """One authority to trust, that vouches for nobody here: reading the world's takes 30 ms each time."""
    known = tmp_path_factory.getbasetemp() / "authority.pem"
    if not known.exists():
        all_of_them = Path(certifi.where()).read_text(encoding="utf-8")
        end = "-----END CERTIFICATE-----\n"
        known.write_text(all_of_them.partition(end)[0] + end)
    monkeypatch.setenv("SSL_CERT_FILE", str(known))


@pytest.fixture
def serve():
    """Serve answers until the test is over."""
    with ExitStack() as stack:
        yield lambda *answers, **more: stack.enter_context(serving(answers, **more))


def connected(server, **more):
    """Connect with the canary for a password."""
    return registry.connect(server.url, **{"auth": AUTH, "timeout": 50} | more)


@pytest.mark.parametrize(
    ("answer", "said", "attempts"),
    [
        (refusal_fields(401, "Unauthorized"), "401: user and password are missing or wrong: 'Unauthorized'", 1),
        (Answer(401, b"", {"WWW-Authenticate": "Basic"}), "401: user and password are missing or wrong", 1),
        (refusal_fields(403), "403: the user may not do that: 'no'", 1),
        (refusal_fields(404, code=0), "404: the server does not do that; is this its address?: 'no'", 1),
        (Answer(404, b"<html>"), "404: the server does not do that; is this its address?", 1),
        (refusal_fields(409), "409: the server refuses the schema as incompatible: 'no'", 1),
        (refusal_fields(422), "422: the server refuses what it was sent: 'no'", 1),
        (refusal_fields(418), "418: the server does not do that; is this its address?: 'no'", 1),
        (refusal_fields(429), "429: too many requests: 'no'", 4),
        (refusal_fields(500), "500: the server failed: 'no'", 4),
        (Answer(503, b"<html>down</html>"), "503: the server failed", 4),
        (refusal_fields(501), "501: the server failed: 'no'", 1),
        (refusal_fields(422, "x" * 5000), "422: the server refuses what it was sent: '" + "x" * 80 + "...'", 1),
        (refusal_fields(422, {"a": ["b"]}), "422: the server refuses what it was sent: \"{'a': ['b']}\"", 1),
        (Answer(422, [1]), "422: the server refuses what it was sent", 1),
    ],
)
def test_a_refusal_is_one_sentence_with_the_facts(serve, answer, said, attempts):
    """Asked again only where that may help."""
    server = serve(answer)
    with pytest.raises(cdcavro.RegistryError) as caught:
        connected(server).fetch(subject="s")
    assert str(caught.value) == f"registry {server.url}: subject 's': {said}"
    assert (caught.value.url, caught.value.status, caught.value.subject) == (server.url, answer.status, "s")
    assert len(server.asked) == attempts


@pytest.mark.parametrize(
    ("answer", "said", "attempts"),
    [
        (Answer(200, b"<!DOCTYPE html><html>", {"Content-Type": "text/html"}), "the answer is a page, not JSON; is this its address, or does a proxy answer?", 1),
        (Answer(200, b""), "the answer cannot be used: it is not what was asked for", 1),
        (Answer(200, b'{"id": 1, "schema"'), "the answer cannot be used: it is not what was asked for", 1),
        (Answer(200, b"[" * 100_000), "the answer cannot be used: it is not what was asked for", 1),
        (Answer(200, b'{"id": ' + b"1" * 5000 + b"}"), "the answer cannot be used: it is not what was asked for", 1),
        (Answer(200, [1]), "the answer cannot be used: it is not what was asked for", 1),
        (Answer(200, LATEST | {"references": 7}), "the answer cannot be used: it is not what was asked for", 1),
        (Answer(200, LATEST | {"references": [7]}), "the answer cannot be used: it is not what was asked for", 1),
        (Answer(200, LATEST | {"schema": 7}), "the answer cannot be used: its schema is no text", 1),
        (Answer(200, LATEST | {"schema": None}), "the answer cannot be used: its schema is no text", 1),
        (Answer(200, LATEST | {"id": "1"}), "the answer cannot be used: its id is no integer from 1 to 2147483647", 1),
        (Answer(200, LATEST | {"id": 2**31}), "the answer cannot be used: its id is no integer from 1 to 2147483647", 1),
        (Answer(200, LATEST | {"id": True}), "the answer cannot be used: its id is no integer from 1 to 2147483647", 1),
        (Answer(200, LATEST | {"version": 0}), "the answer cannot be used: its version is no integer from 1 to 2147483647", 1),
        (Answer(200, LATEST | {"subject": "t"}), "the answer cannot be used: it is another version", 1),
        (Answer(200, INT), "the answer cannot be used: it is another version", 1),
        (Answer(200, LATEST | {"guid": "x"}), "the answer cannot be used: its guid is none", 1),
        (Answer(200, LATEST | {"schemaType": "PROTOBUF"}), "the answer cannot be used: it is no Avro schema", 1),
        (Answer(200, LATEST | {"schema": '"imt"'}), "it holds what is no schema: schema $: 'imt' is not defined before it is used", 1),
        (Answer(200, LATEST | {"schema": "[" * 100_000}), "it holds what is no schema: schema text: not JSON: ", 1),
        (Answer(200, LATEST, announced=1000), "the connection broke, or the answer is not whole", 4),
        (Answer(drops=True), "the connection broke, or the answer is not whole", 4),
        (Answer(200, LATEST, {"Content-Encoding": "gzip"}), "200: the answer is compressed, which was not asked for", 1),
        (Answer(200, b" " * (33 << 20)), "200: the answer has more than 32 MiB", 1),
    ],
)  # fmt: skip
def test_what_is_no_answer_is_one_sentence(serve, answer, said, attempts):
    """Whatever a server, or a proxy before it, sends."""
    server = serve(answer)
    with pytest.raises(cdcavro.RegistryError) as caught:
        connected(server).fetch(subject="s")
    assert str(caught.value).startswith(f"registry {server.url}: subject 's': {said}")
    assert len(str(caught.value)) < 1200
    assert len(server.asked) == attempts


@pytest.mark.parametrize("answer", [{"a": 1}, [1], ["a\nb"], [""], None, "x"])
def test_a_list_of_subjects_that_is_none_is_an_error(serve, answer):
    """Names are data, and a terminal shows them."""
    with pytest.raises(cdcavro.RegistryError, match="the answer cannot be used"):
        connected(serve(Answer(200, answer))).subjects()


@pytest.mark.parametrize("answer", [Answer(is_silent=True), Answer(200, LATEST, drip=0.05)])
def test_a_slow_server_is_given_up(serve, waits, answer):
    """Also one that sends a byte now and then; once, for another attempt would wait as long."""
    server = serve(answer)
    said = f"registry {server.url}: subject 's': no whole answer within 0.3 seconds"
    assert error_of(lambda: connected(server, timeout=0.3).fetch(subject="s")) == said
    while not server.asked:
        time.sleep(0.01)
    assert (waits, len(server.asked)) == ([], 1)


def test_a_server_that_is_not_there_is_an_error(waits):
    """After some attempts, each a little later."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        said = f"registry {url}: it cannot be reached: Connection refused"
        assert error_of(registry.connect(url, auth=AUTH).subjects) == said
    assert len(waits) == 3
    assert 0.1 <= waits[0] <= 0.2 <= waits[1] <= 0.4 <= waits[2] <= 0.8


@pytest.mark.parametrize("fault", [refusal_fields(503), refusal_fields(429), refusal_fields(500), Answer(drops=True)])
def test_what_passes_is_asked_again(serve, fault):
    """Two faults, and then the answer."""
    server = serve(fault, fault, Answer(200, LATEST))
    assert connected(server).fetch(subject="s").id == 1
    assert len(server.asked) == 3


@pytest.mark.parametrize(("after", "waited"), [("7", [7.0]), ("0", [0.0])])
def test_a_server_says_when_to_ask_again(serve, waits, after, waited):
    """Retry-After is heeded."""
    busy = refusal_fields(429)
    busy.headers["Retry-After"] = after
    assert connected(serve(busy, Answer(200, LATEST))).fetch(subject="s").id == 1
    assert waits == waited


@pytest.mark.parametrize("after", ["31", "9" * 5000])
def test_nobody_waits_as_long_as_a_server_likes(serve, waits, after):
    """More than 30 seconds is a refusal."""
    busy = refusal_fields(429)
    busy.headers["Retry-After"] = after
    server = serve(busy)
    assert error_of(lambda: connected(server).fetch(subject="s")).endswith("429: too many requests: 'no'")
    assert (waits, len(server.asked)) == ([], 1)


@pytest.mark.parametrize("after", ["-1", "1e3", "soon", "Wed, 21 Oct 2026 07:28:00 GMT", "²", ""])
def test_a_time_that_is_no_number_of_seconds_is_passed_over(serve, waits, after):
    """Our own pause counts."""
    busy = refusal_fields(429)
    busy.headers["Retry-After"] = after.encode().decode("latin-1")
    connected(serve(busy, Answer(200, LATEST))).fetch(subject="s")
    assert 0.1 <= waits[0] <= 0.2


def test_a_folder_in_the_environment_is_trusted_instead_of_all_authorities(monkeypatch, tmp_path):
    """SSL_CERT_DIR counts where SSL_CERT_FILE does not; its certificates are read when one is needed."""
    monkeypatch.delenv("SSL_CERT_FILE")
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    context = tls_context(ca=None, certificate=None, key=None)
    assert context.get_ca_certs() == []
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)


@pytest.mark.parametrize(
    ("name", "path"),
    [("a/b?c#d%2e..", "a%2Fb%3Fc%23d%252e.."), ("..%2f..", "..%252f.."), (" ü&=+;", "%20%C3%BC%26%3D%2B%3B")],
)
def test_no_name_of_a_subject_leaves_its_place_in_an_address(serve, name, path):
    """Whatever means something in an address is escaped, in a query too."""
    server = serve(Answer(200, LATEST | {"subject": name, "version": 1}))
    backend = connected(server)._backend
    backend.version(name, 1)
    with pytest.raises(cdcavro.RegistryError):
        backend.uses(1, name)
    said = [asked[1] for asked in server.asked]
    assert said == [f"/subjects/{path}/versions/1", f"/schemas/ids/1/versions?subject={path}"]


def test_a_version_that_was_not_asked_for_is_refused(serve):
    """A server that answers with another version of the subject does not decide what is read."""
    server = serve(Answer(200, LATEST))
    said = f"registry {server.url}: subject 's': the answer cannot be used: it is another version"
    assert error_of(lambda: connected(server).fetch(subject="s", version=LATEST["version"] + 1)) == said


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(serve, status):
    """Neither elsewhere, where the password would go, nor back to the same server."""
    elsewhere = serve(Answer(200, LATEST))
    for target in (elsewhere.url, "/other", f"http://{CANARY}@{elsewhere.url[7:]}"):
        server = serve(Answer(status, b"", {"Location": quote(target, safe=":/@")}))
        said = f"registry {server.url}: subject 's': {status}: the server points elsewhere; redirects are not followed"
        assert error_of(lambda server=server: connected(server).fetch(subject="s")) == said
        assert len(server.asked) == 1
    assert elsewhere.asked == []


@pytest.mark.parametrize("way", ["argument", "address", "environment"])
def test_credentials_come_by_argument_address_or_environment(serve, monkeypatch, way):
    """And are sent as they are."""
    server = serve(Answer(200, []))
    host = server.url.removeprefix("http://")
    if way == "argument":
        schemas = registry.connect(server.url, auth=AUTH)
    elif way == "address":
        schemas = registry.connect(f"http://{quote(AUTH[0])}:{quote(CANARY, safe='')}@{host}/x/")
        assert schemas.url == f"{server.url}/x"
    else:
        monkeypatch.setenv("CDCAVRO_REGISTRY_USER", AUTH[0])
        monkeypatch.setenv("CDCAVRO_REGISTRY_PASSWORD", CANARY)
        schemas = registry.connect(server.url)
    schemas.subjects()
    assert server.asked[0][2]["Authorization"] == f"Basic {_USERINFO}"


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("", "''"),
        ("schemas", "'schemas'"),
        ("localhost:8081", "'localhost:8081'"),
        ("ftp://x/y", "'ftp://x/y'"),
        ("http://host:80x/a", "'http://host:.../a'"),
        ("http://host/a?token=secret", "'http://host/a...'"),
        ("http://user:secret@host:80x", "'host:...'"),
        ("user:sec/secret@host", "'host'"),
        ("http://user:secret", "'http://user:...'"),
    ],
)
def test_an_address_that_is_none_is_named_without_what_may_be_a_secret(url, said):
    """The sentence says which address, so that the mistake in it is seen."""
    assert error_of(lambda: registry.connect(url)).startswith(f"registry {said}: expected an address such as")


def test_without_credentials_none_are_sent(serve):
    """Nothing is made up."""
    server = serve(Answer(200, []))
    registry.connect(server.url).subjects()
    assert "Authorization" not in server.asked[0][2]


ECHOES = [
    f"wrong password {CANARY}",
    f"Authorization: Basic {_USERINFO}",
    f"http://{quote(AUTH[0])}:{quote(CANARY, safe='')}@host/",
    *(transform(CANARY) for transform in TRANSFORMS.values()),
]
FAULTS = {
    **{
        f"echo {i} in {status}": refusal_fields(status, echo)
        for i, echo in enumerate(ECHOES)
        for status in (401, 409, 422, 500)
    },
    **{f"echo {i} as HTML": Answer(500, echo.encode()) for i, echo in enumerate(ECHOES)},
    **{f"echo {i} as schema": Answer(200, LATEST | {"schema": json.dumps(echo)}) for i, echo in enumerate(ECHOES)},
    "echo as schema type": Answer(200, LATEST | {"schemaType": CANARY}),
    "broken": Answer(drops=True),
    "slow": Answer(is_silent=True),
    **{
        f"redirect {i}": Answer(
            302, b"", {"Location": f"http://elsewhere/{transform(CANARY)!a}", "X-Echo": ascii(CANARY)}
        )
        for i, transform in enumerate(TRANSFORMS.values())
    },
    "no JSON": Answer(200, b"<html>"),
    "fine": Answer(200, LATEST),
}


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("way", ["argument", "address"])
def test_no_secret_is_in_any_output(serve, caplog, capfd, name, way):
    """Errors, their chains and reprs, logs down to DEBUG, standard output and standard error."""
    caplog.set_level(logging.DEBUG)
    logging.getLogger().setLevel(logging.DEBUG)
    server = serve(FAULTS[name])
    url, auth = server.url, AUTH
    if way == "address":
        url, auth = f"http://{quote(AUTH[0])}:{quote(CANARY, safe='')}@{url[7:]}", None
    schemas = registry.connect(url, auth=auth, timeout=0.1 if name == "slow" else 50)
    said = [repr(schemas), str(schemas), schemas.url, repr(schemas._backend), repr(schemas._backend._session)]
    for ask in (
        lambda: schemas.fetch(subject="s"),
        lambda: schemas.fetch(id=1),
        lambda: schemas.publish('"int"', "s"),
        schemas.subjects,
    ):
        try:
            said.append(repr(ask()))
        except cdcavro.CdcAvroError as error:
            said += _all_of(error)
    out, err = capfd.readouterr()
    everything = "\n".join([*said, caplog.text, *map(repr, (one.__dict__ for one in caplog.records)), out, err])
    assert server.asked
    assert [one for one in SECRETS if one in everything] == []


def _all_of(error: BaseException | None) -> list[str]:
    """Write all that an error shows, with its causes and contexts, shown or not."""
    said: list[str] = []
    while error is not None:
        said += [str(error), repr(error), repr(error.args), repr(vars(error)), *traceback.format_exception(error)]
        error = error.__cause__ or error.__context__
    return said


def test_the_canary_would_be_found(serve):
    """The search above sees what it looks for: a server's words are shown where they hold no secret."""
    said = error_of(lambda: registry.connect(serve(refusal_fields(422, CANARY)).url).fetch(subject="s"))
    assert any(one in said for one in SECRETS)


def test_a_command_says_no_secret_either(serve, tmp_path):
    """Whatever it is asked, and with the password in the address."""
    server = serve(refusal_fields(401, f"wrong password {CANARY}"))
    url = f"http://{quote(AUTH[0])}:{quote(CANARY, safe='')}@{server.url[7:]}"
    code = "import sys; from cdcavro.cli import main; main(prog_name='cdcavro')"
    root = str(Path(cdcavro.__file__).parents[1])
    for arguments in (["subjects"], ["publish", "canal"]):
        command = [
            sys.executable,
            "-c",
            f"import sys; sys.path.insert(0, {root!r}); {code}",
            *arguments,
            "--registry",
            url,
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, "")
        assert "401: user and password are missing or wrong: (not shown: it holds a secret)" in done.stderr
        assert [one for one in SECRETS if one in done.stderr] == []


@pytest.mark.parametrize(
    "url",
    [f"http://u:{quote(CANARY)}@host:notaport/", f"http://u:{quote(CANARY)}@/", f"http://h/?password={quote(CANARY)}",
     f"http://h/#{quote(CANARY)}", f"htps://u:{quote(CANARY)}@host/", f"http://u:{CANARY}@host/", f"http://[u:{quote(CANARY)}@h/"],
)  # fmt: skip
def test_an_address_that_is_none_is_not_shown(url):
    """A secret may stand anywhere in it."""
    with pytest.raises(cdcavro.RegistryError, match="expected an address") as caught:
        registry.connect(url).subjects()
    assert [one for one in SECRETS if one in "".join(_all_of(caught.value))] == []


def test_a_guid_is_asked_for_where_a_server_has_guids(serve):
    """Confluent's answer has no id beside it."""
    guid = UUID(int=7)
    server = serve(Answer(200, INT))
    schemas = connected(server)
    found, payload = schemas.open(b"\x02", header=registry.frame(b"", registry.Guid(guid)))
    assert (found.schema.json, found.id, found.guid, payload) == ('"int"', None, guid, b"\x02")
    assert server.asked[0][:2] == ("GET", f"/schemas/guids/{guid}")


def test_a_server_that_tells_versions_apart_by_the_canonical_form_is_caught(serve):
    """It takes a change of aliases for the old version: that is said, not believed."""
    old = {"type": "record", "name": "R", "fields": []}
    registered = LATEST | {"schema": json.dumps(old)}
    said = (
        Answer(200, registered),  # the schema is looked up: this one, says the server
        Answer(200, registered),  # version 1, which is another
        Answer(200, [1]),  # all versions
        Answer(200, registered),
        Answer(200, {"compatibilityLevel": "NONE"}),
        Answer(200, [1]),
        Answer(200, registered),  # the latest, for the verdict
        Answer(200, {"id": 1}),  # registered
        Answer(200, registered),  # looked up again
        Answer(200, registered),
    )
    server = serve(*said)
    new = json.dumps(old | {"aliases": ["Q"]})
    assert error_of(lambda: connected(server).publish(new, "s")) == (
        f"registry {server.url}: subject 's': the server took the schema for an older version, from which it differs"
    )


def test_tls_is_checked_and_a_ca_can_be_given(serve, certificate, monkeypatch):
    """A certificate that nobody vouches for is refused, before anything is sent."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    server = serve(Answer(200, ["s"]), context=context)
    said = error_of(connected(server).subjects)
    assert said.startswith(f"registry {server.url}: it cannot be reached: ")
    assert "certificate" in said.lower()
    assert server.asked == []
    assert connected(server, ca=certificate[0]).subjects() == ["s"]
    monkeypatch.setenv("CDCAVRO_REGISTRY_CA", certificate[0])
    assert connected(server).subjects() == ["s"]


def test_tls_files_that_cannot_be_used_are_an_error_at_once(tmp_path):
    """Before anything is asked."""
    said = "the TLS files cannot be used: No such file or directory"
    assert error_of(lambda: registry.connect("https://h/", ca=str(tmp_path / "none"))) == said
    said = "the TLS files cannot be used: a key is of no use without its certificate"
    assert error_of(lambda: registry.connect("https://h/", key=str(tmp_path / "none"))) == said


def test_without_the_extra_it_is_said_how_to_get_it(monkeypatch):
    """Folders need none."""
    monkeypatch.setitem(sys.modules, "cdcavro.registry.server_backend", None)
    said = "httpx2 is not installed: pip install 'cdcavro[registry]'"
    assert error_of(lambda: registry.connect("https://h/")) == said
    assert registry.connect("file:s").url == "file:s"
