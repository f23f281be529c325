r"""Cipher of the bytes of rejects: whoever has the public key encrypts them, and whoever has the private one reads them.

A value is `cdcavro\x01`, a public key of X25519 that was made for it and some others (32 bytes), a nonce (12), and the
bytes by AES-256-GCM with its tag (16). The key is HKDF-SHA256 of what X25519 makes of this public key and that of the
reader, with both, in this order, as salt and `cdcavro reject raw` or `cdcavro reject record_key` as info; `cdcavro\x01`
and `raw` or `record_key` are authenticated besides.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cdcavro.errors import PayloadError, SetupError
from cdcavro.exact.jsontext import MAX_LENGTH

if TYPE_CHECKING:
    import pyarrow as pa
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

MAGIC: Final = b"cdcavro\x01"
RAW, RECORD_KEY = "raw", "record_key"
PUBLIC_KEY, PRIVATE_KEY = "rejects_public_key", "rejects_private_key"
# What keys in PEM begin with.
PEM: Final = "-----BEGIN"
_INFO: Final = "cdcavro reject "
_POINT, _NONCE, _SIZE = 32, 12, 32
# How often a value may have been encrypted: once more with each time that it is read again without the key.
LAYERS: Final = 32
_HEAD: Final = len(MAGIC) + _POINT + _NONCE


def is_encrypted(value: bytes | None) -> bool:
    """Return whether a value looks like one that is encrypted."""
    return value is not None and value.startswith(MAGIC)


class RejectCipher:
    """Encrypts the bytes of rejects, if it has a public key, and decrypts them, if it has a private one.

    `public` and `private` are the bytes of keys of X25519, or None. Nothing shows them.
    """

    def __init__(self, public: bytes | None, private: bytes | None) -> None:
        self._public, self._private = public, private
        # What encrypts each part, and its public key; made when it is first needed, and not by several threads.
        self._made: dict[str, tuple[bytes, AESGCM]] = {}

    @classmethod
    def of(cls, public: str | None, private: str | None) -> RejectCipher | None:
        """Return the cipher of two keys, each the path of a file in PEM or its text; None if there is neither.

        Raises `ValueError`, which shows no key, and `SetupError` if `cryptography` is not installed.
        """
        if public is None and private is None:
            return None
        return cls(
            None if public is None else _key(PUBLIC_KEY, public),
            None if private is None else _key(PRIVATE_KEY, private),
        )

    @classmethod
    def of_private(cls, private: str) -> RejectCipher:
        """Return a cipher that only decrypts. Raises as `of` does."""
        return cls(None, _key(PRIVATE_KEY, private))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the keys alone, for the processes of Spark."""
        return RejectCipher, (self._public, self._private)

    @property
    def is_encrypting(self) -> bool:
        """Whether it has a public key."""
        return self._public is not None

    def encrypt(self, value: bytes | None, part: str) -> bytes | None:
        """Return the bytes of a part of a reject, `raw` or `record_key`, encrypted; None for none."""
        if value is None or self._public is None:
            return value
        if part not in self._made:
            from cryptography.hazmat.primitives.asymmetric import x25519  # noqa: PLC0415

            own = x25519.X25519PrivateKey.generate()
            point = own.public_key().public_bytes_raw()
            shared = own.exchange(x25519.X25519PublicKey.from_public_bytes(self._public))
            self._made[part] = point, _aead(shared, point, self._public, part)
        point, aead = self._made[part]
        nonce = os.urandom(_NONCE)
        return MAGIC + point + nonce + aead.encrypt(nonce, value, MAGIC + part.encode())

    def decrypt(self, value: bytes, part: str) -> bytes:
        """Return the bytes of a part of a reject. Raises `PayloadError` without the key, and for other bytes."""
        if self._private is None:
            raise PayloadError(f"{PRIVATE_KEY}, the key by which encrypted rejects are read", "none")
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415
        from cryptography.hazmat.primitives.asymmetric import x25519  # noqa: PLC0415

        point, nonce = value[len(MAGIC) : len(MAGIC) + _POINT], value[len(MAGIC) + _POINT : _HEAD]
        own = x25519.X25519PrivateKey.from_private_bytes(self._private)
        try:
            shared = own.exchange(x25519.X25519PublicKey.from_public_bytes(point))
            aead = _aead(shared, point, own.public_key().public_bytes_raw(), part)
            return aead.decrypt(nonce, value[_HEAD:], MAGIC + part.encode())
        except (InvalidTag, ValueError):
            raise PayloadError(
                "bytes of a reject for the private key that is given", "those for another key, or damaged ones"
            ) from None

    def decrypted(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return messages, in a batch of `sources.COLUMNS`; those that are read again are decrypted.

        What cannot be decrypted stays as it is.
        """
        import pyarrow as pa  # noqa: PLC0415  a configuration is read where it is not installed, too
        import pyarrow.compute as pc  # noqa: PLC0415

        is_again = batch.column("clock").is_valid()
        if self._private is None or not pc.any(is_again).as_py():
            return batch
        columns = {name: batch.column(name).to_pylist() for name in ("raw", "length", "key")}
        for i, again in enumerate(is_again.to_pylist()):
            if again and is_encrypted(columns["raw"][i]):
                raw, key = self._opened(columns["raw"][i], columns["key"][i])
                # That of a message of which the reject has the beginning only stays.
                length = columns["length"][i] or 0
                length = length if length > MAX_LENGTH else len(raw)
                columns["raw"][i], columns["length"][i], columns["key"][i] = raw, length, key
        for name, values in columns.items():
            at = batch.schema.get_field_index(name)
            batch = batch.set_column(at, batch.schema.field(at), pa.array(values, batch.schema.field(at).type))
        return batch

    def _opened(self, raw: bytes, key: bytes | None) -> tuple[bytes, bytes | None]:
        """Return the bytes of a reject: one that was refused for want of a key was encrypted once more."""
        # The layer that cannot be opened is told of where the message is converted.
        with suppress(PayloadError):
            for _ in range(LAYERS):
                if is_encrypted(raw):
                    opened = self.decrypt(raw, RAW)
                    key = self.decrypt(key, RECORD_KEY) if key is not None and is_encrypted(key) else key
                    raw = opened
        return raw, key


_KINDS: Final = {
    PUBLIC_KEY: "a public key of X25519 in PEM, or the path of its file",
    PRIVATE_KEY: "a private key of X25519 in PEM without a password, or the path of its file",
}


def check_decrypted(raw: bytes, cipher: RejectCipher | None) -> None:
    """Raise `PayloadError`, which says what is missing, for the bytes of a reject that are still encrypted."""
    if is_encrypted(raw):
        (cipher or RejectCipher(None, None)).decrypt(raw, RAW)
        raise PayloadError(f"bytes of a reject that were encrypted at most {LAYERS} times", "more")


def _key(name: str, stated: str) -> bytes:
    """Return the bytes of a key. Raises as `RejectCipher.of` does."""
    try:
        from cryptography.hazmat.primitives.asymmetric import x25519  # noqa: PLC0415  few pipelines need it
        from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise SetupError(f"{error.name} is not installed: pip install 'cdcavro[encrypt]'") from error
    text = _pem(name, stated)
    try:
        key = load_pem_public_key(text) if name == PUBLIC_KEY else load_pem_private_key(text, password=None)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{name} is {_KINDS[name]}, which this is not ({type(error).__name__})") from None
    if isinstance(key, x25519.X25519PublicKey):
        return key.public_bytes_raw()
    if isinstance(key, x25519.X25519PrivateKey):
        return key.private_bytes_raw()
    raise ValueError(f"{name} is {_KINDS[name]}, not a key of another kind")


def _pem(name: str, stated: str) -> bytes:
    """Return the text of a key."""
    if PEM in stated:
        return stated.encode()
    try:
        return Path(stated).read_bytes()
    except (OSError, ValueError) as error:
        # It is not shown: what is no path may be a key.
        raise ValueError(f"{name} is {_KINDS[name]}: {getattr(error, 'strerror', None) or 'this is neither'}") from None


def _aead(shared: bytes, point: bytes, public: bytes, part: str) -> AESGCM:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415
    from cryptography.hazmat.primitives.hashes import SHA256  # noqa: PLC0415
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF  # noqa: PLC0415

    return AESGCM(HKDF(SHA256(), _SIZE, point + public, (_INFO + part).encode()).derive(shared))
