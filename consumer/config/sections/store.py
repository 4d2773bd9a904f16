"""The store of versions, postings and verdicts: ``[store]`` and ``[store.hbase]``."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from consumer.config.setting_types import Count, Seconds, Section, Text
from storage.hbase import HbaseOptions
from storage.kinds import kind_of
from storage.lmdb import LmdbOptions

_LMDB = LmdbOptions()
_HBASE = HbaseOptions()


class HbaseSection(Section):
    """Connections to the gateways of an hbase:// store."""

    connections_max: Annotated[int, Field(ge=1, le=64)] = _HBASE.connections_max
    """Maximum connections of this process to all gateways together."""
    judges_max: Annotated[int, Field(ge=1, le=16)] = _HBASE.judges_max
    """Threads that judge different partitions of a batch in parallel; raise it if the machines of HBase have idle
    cores."""
    warm_up_s: Annotated[float, Field(ge=0, le=300)] = _HBASE.warm_up_s
    """Time limit of the warm-up: a starting consumer looks up made-up articles until that gets no faster."""
    deadline_s: Seconds = _HBASE.deadline_s
    """How long one call of the store is retried. Then a run over a file ends, and a run over topics waits and tries
    again."""
    call_s: Seconds = _HBASE.call_s
    """How long to wait for one answer."""
    connect_s: Seconds = _HBASE.connect_s
    """How long to wait for a connection to a gateway."""
    retire_s: Seconds = _HBASE.retire_s
    """How long an idle connection may be reused; keep it below the gateway's own limit, by default 60."""
    tls: bool = False
    """Connect to the gateways with TLS."""
    tls_ca: Text | None = None
    """A file with the authorities to trust, in PEM format; when unset, the system's authorities are trusted."""
    tls_certificate: Text | None = None
    """A file with the client certificate, in PEM format; its key is in tls_key or in the same file."""
    tls_key: Text | None = None
    """A file with the key of the client certificate, in PEM format."""

    @model_validator(mode="after")
    def _tls_files_have_effect(self) -> "HbaseSection":
        if not self.tls and any((self.tls_ca, self.tls_certificate, self.tls_key)):
            raise ValueError("tls_ca, tls_certificate and tls_key have no effect without tls = true")
        if self.tls_key and not self.tls_certificate:
            raise ValueError("tls_key has no effect without tls_certificate")
        return self


def _store_url(url: str) -> str:
    kind_of(url)
    return url


class StoreSection(Section):
    """The store of versions, postings and verdicts."""

    url: Annotated[str, AfterValidator(_store_url)] = "memory:"
    """The store: memory:, lmdb:PATH (a directory) or hbase://HOST:PORT[,HOST:PORT]/NAMESPACE (Thrift gateways)."""
    durability: Literal["power", "process"] = _LMDB.durability
    """What an acknowledged write survives: a power loss, or only the end of the process."""
    keep_bodies: bool = _LMDB.keep_bodies
    """Keep the texts, for show and explain."""
    slack_s: Annotated[int, Field(ge=0)] = 86_400
    """How long a version is kept after the window."""
    row_postings_max: Count | None = None
    """Rows of up to this many postings are read whole. When unset: 4,000 on HBase (1,000 with 16x28), else 10,000."""
    map_bytes_max: Count = _LMDB.map_bytes_max
    """Maximum size of an LMDB store in bytes; the file grows up to it."""
    hbase: HbaseSection = HbaseSection()
