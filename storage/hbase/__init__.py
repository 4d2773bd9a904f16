"""The shared store: tables of an HBase, reached through its Thrift gateways by any number of processes."""

from storage.hbase.options import HbaseOptions, Place, TlsOptions, parse_place
from storage.hbase.store import HbaseStore

__all__ = ["HbaseOptions", "HbaseStore", "Place", "TlsOptions", "parse_place"]
