"""Opens the registry at an address: finds out which kind it is, and where its credentials come from."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from cdcavro.errors import RegistryError, SetupError, shown
from cdcavro.registry.client import Registry
from cdcavro.registry.credentials import Credentials
from cdcavro.registry.folder_backend import FileRegistry

TIMEOUT: Final = 10.0
_USERINFO: Final = re.compile(r"[^/]*:[^/]*@")
_QUERY: Final = re.compile(r"[?#].*", re.DOTALL)
_NO_PORT: Final = re.compile(r":(?![0-9]{0,5}(?:/|\Z))[^/]*")
_VARIABLE: Final = "CDCAVRO_REGISTRY_"
_EXPECTED: Final = "expected an address such as https://HOST/PATH, http://HOST/PATH or file:FOLDER"


def connect(
    url: str,
    *,
    auth: tuple[str, str] | None = None,
    ca: str | None = None,
    certificate: str | None = None,
    key: str | None = None,
    timeout: float = TIMEOUT,
) -> Registry:
    """Return the registry at an address.

    `https://…` and `http://…` are servers with Confluent's REST API (`pip install 'cdcavro[registry]'`);
    `file:FOLDER` is a folder, which the first publication creates. `auth` is (user, password) for basic
    authentication; without it they are taken from the address, or else from CDCAVRO_REGISTRY_USER and
    CDCAVRO_REGISTRY_PASSWORD. `ca` is a file or folder of certificates to trust, `certificate` and
    `key` are the files of the client's own certificate and key; their defaults are CDCAVRO_REGISTRY_CA,
    CDCAVRO_REGISTRY_CERTIFICATE and CDCAVRO_REGISTRY_KEY. `timeout` is in seconds, for each attempt.
    Nothing is sent yet. Raises `RegistryError` for an invalid address, and `SetupError` if
    httpx2 is not installed or the TLS files cannot be used.

    >>> connect("file:schemas")
    Registry('file:schemas')
    """
    scheme, colon, rest = url.partition(":")
    if not colon or scheme.lower() not in ("http", "https", "file"):
        raise RegistryError(_safe(url), _EXPECTED)
    if scheme.lower() == "file":
        return Registry(FileRegistry(_folder(rest)))
    clean, user, password = _without_credentials(url)
    credentials = auth or ((user, password) if user or password else None) or _from_environment()
    files = {
        name: value or os.environ.get(_VARIABLE + name.upper()) or None
        for name, value in (("ca", ca), ("certificate", certificate), ("key", key))
    }
    return _server(clean, credentials, files, timeout)


def _safe(url: str) -> str:
    """Return an address that is none for use in a sentence: what may be a login, a password or a token is left out."""
    scheme, _, rest = url.rpartition("@")[2].rpartition("//")
    place = _QUERY.sub("...", rest)
    return shown(f"{scheme}//{_NO_PORT.sub(':...', place)}" if scheme else _NO_PORT.sub(":...", place))


def _folder(rest: str) -> Path:
    path = rest
    # A name such as this would hold a password, and be shown.
    if "://" in rest or _USERINFO.search(unquote(rest)):
        raise RegistryError("file", _EXPECTED + ", without user and password")
    if rest.startswith("//"):
        host, _, path = rest[2:].partition("/")
        if host not in ("", "localhost"):
            raise RegistryError("file", f"a folder of another machine, {shown(host)}; write file:///PATH")
        path = "/" + unquote(path)
    if not path or not path.isprintable():
        raise RegistryError("file", _EXPECTED)
    return Path(path)


def _without_credentials(url: str) -> tuple[str, str, str]:
    """Return an address without its user and password, and these two, "" if it has none."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
        parts = urlsplit("")
    if not host or parts.query or parts.fragment or not url.isprintable() or " " in url:
        raise RegistryError(_safe(url), _EXPECTED + ", without ? and #")
    place = f"[{host}]" if ":" in host else host
    clean = f"{parts.scheme}://{place}{'' if port is None else f':{port}'}{parts.path.rstrip('/')}"
    return clean, unquote(parts.username or ""), unquote(parts.password or "")


def _from_environment() -> tuple[str, str] | None:
    user, password = (os.environ.get(_VARIABLE + name, "") for name in ("USER", "PASSWORD"))
    return (user, password) if user or password else None


def _server(url: str, auth: tuple[str, str] | None, files: dict[str, str | None], timeout: float) -> Registry:
    try:
        from cdcavro.registry.http_session import Session, tls_context  # noqa: PLC0415  an extra brings what it needs
        from cdcavro.registry.server_backend import ServerRegistry  # noqa: PLC0415
    except ImportError as error:
        raise SetupError("httpx2 is not installed: pip install 'cdcavro[registry]'") from error
    context = tls_context(ca=files["ca"], certificate=files["certificate"], key=files["key"])
    return Registry(ServerRegistry(url, Session(context, auth, timeout), Credentials(auth)))
