"""Where versions, postings and verdicts are kept: ``[store]`` and ``[store.hbase]``."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from consumer.config.setting_types import Count, Seconds, Section, Text
from storage.hbase import HbaseOptions
from storage.kinds import kind_of
from storage.lmdb import LmdbOptions

_LMDB = LmdbOptions()
_HBASE = HbaseOptions()


class HbaseSection(Section):
    """How the gateways of an hbase:// store are used."""

    connections_max: Annotated[int, Field(ge=1, le=64)] = _HBASE.connections_max
    """Maximum connections of this process to all gateways together."""
    judges_max: Annotated[int, Field(ge=1, le=16)] = _HBASE.judges_max
    """Threads that judge different partitions of a batch at a time; raise it if HBase elsewhere has cores to spare."""
    warm_up_s: Annotated[float, Field(ge=0, le=300)] = _HBASE.warm_up_s
    """How long a consumer may look up made-up articles before it is ready; it stops when that gets no faster."""
    deadline_s: Seconds = _HBASE.deadline_s
    """How long one call of the store is retried before the run gives up."""
    call_s: Seconds = _HBASE.call_s
    """How long to wait for one answer."""
    connect_s: Seconds = _HBASE.connect_s
    """How long to wait for a connection to a gateway."""
    retire_s: Seconds = _HBASE.retire_s
    """How long a connection may be idle and still be used again; less than the gateway's own limit, which is 60."""
    tls: bool = False
    """Whether to connect to the gateways with TLS."""
    tls_ca: Text | None = None
    """A file with the authorities to trust, in PEM format; when unset, those of the system."""
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
    """Where versions, postings and verdicts are kept."""

    url: Annotated[str, AfterValidator(_store_url)] = "memory:"
    """The store: memory:, lmdb:PATH (a directory) or hbase://HOST:PORT[,HOST:PORT]/NAMESPACE (Thrift gateways)."""
    durability: Literal["power", "process"] = _LMDB.durability
    """What an acknowledged write survives: a power loss, or only the end of the process."""
    keep_bodies: bool = _LMDB.keep_bodies
    """Keep the texts, for show and explain."""
    slack_s: Annotated[int, Field(ge=0)] = 86_400
    """How long past the window a version is kept."""
    row_postings_max: Count | None = None
    """Rows of up to this many postings are read whole. When unset: 4,000 on HBase (1,000 with 16x28), else 10,000."""
    map_bytes_max: Count = _LMDB.map_bytes_max
    """Maximum bytes of an LMDB store, which grows by itself up to there."""
    hbase: HbaseSection = HbaseSection()
