"""A registry that a pipeline uses: where it is, how subjects are named there, and how long it may be down."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

from cdcavro.errors import JobError, RegistryError
from cdcavro.registry import connect
from cdcavro.registry.backend import UnusableError
from cdcavro.registry.client import TIMEOUT
from cdcavro.registry.subjects import STRATEGIES, parse_level
from cdcavro.spark.pipeline.outputs.topic_names import NAME, check_template

if TYPE_CHECKING:
    from collections.abc import Callable

    from cdcavro.registry import Registry
    from cdcavro.registry.subjects import Strategy

T = TypeVar("T")

_PROBE: Final = "cdcavro"
_PAUSE: Final = 1.0
_FAILED: Final = 500
_TOO_MANY: Final = 429


@dataclass(frozen=True)
class RegistrySettings:
    """A registry and how it is used.

    Attributes: `url` (str), as `registry.connect` takes it, and so `auth` (user and password, or None), `ca`,
    `certificate`, `key` (str or None) and `timeout` (float); `strategy` (str or None), as in `subject_name`, by default
    topic where there is one for each table, topic-record where one is for all, else record; `topic` (str or None), the
    topic that subjects are named after, with `{name}` for the name of the table, which is that of `KafkaTopics` where
    rows go there; `compatibility` (str or None), the level that subjects are given, by default none; `patience` (float),
    how many seconds a server may give no answer. Raises `ValueError` and `RegistryError`.
    """

    url: str = field(repr=False)
    strategy: Strategy | None = None
    topic: str | None = None
    compatibility: str | None = None
    auth: tuple[str, str] | None = field(default=None, repr=False)
    ca: str | None = None
    certificate: str | None = None
    key: str | None = None
    timeout: float = TIMEOUT
    patience: float = 60

    def __post_init__(self) -> None:
        """Check what is told."""
        if self.strategy is not None and self.strategy not in STRATEGIES:
            raise ValueError(f"the strategies are {', '.join(STRATEGIES)}, not {self.strategy!r:.80}")
        if self.compatibility is not None:
            parse_level(self.compatibility)
        if self.topic is not None:
            self.chosen(self.topic)
        self.connect().close()

    def connect(self) -> Registry:
        """Return the registry, of which nothing is asked yet. Raises `RegistryError` and `SetupError`."""
        return connect(
            self.url,
            auth=self.auth,
            ca=self.ca,
            certificate=self.certificate,
            key=self.key,
            timeout=self.timeout,
        )

    def check(self) -> None:
        """Ask the registry for something. Raises `JobError` if it is down, and `RegistryError`."""
        with self.connect() as registry:
            self.patiently(lambda: registry.compatibility(_PROBE))

    def chosen(self, topic: str | None) -> Strategy:
        """Return the strategy for tables whose topics are these. Raises `ValueError` for one that does not fit them."""
        if topic is None:
            if self.strategy not in (None, "record"):
                raise ValueError(f"the strategy {self.strategy} needs a topic")
            return "record"
        check_template(topic)
        strategy: Strategy = self.strategy or ("topic" if NAME in topic else "topic-record")
        if strategy == "topic" and NAME not in topic:
            raise ValueError(
                f"the subject of a topic holds the versions of one table: say {NAME} in the topic, or another strategy"
            )
        return strategy

    def patiently(self, ask: Callable[[], T]) -> T:
        """Return what a registry is asked, again and again as long as it is down. Raises `JobError` if that is too long."""
        until, is_folder = time.monotonic() + self.patience, self.url.lower().startswith("file:")
        while True:
            try:
                return ask()
            except RegistryError as error:
                if is_folder or not _is_down(error):
                    raise
                if time.monotonic() + _PAUSE > until:
                    raise JobError(f"{error}, for {self.patience:g} seconds") from None
            time.sleep(_PAUSE)


def _is_down(error: RegistryError) -> bool:
    if isinstance(error, UnusableError):
        return False
    return error.status is None or error.status == _TOO_MANY or error.status >= _FAILED
