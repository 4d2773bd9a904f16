"""The shared store: tables of an HBase, reached through its Thrift gateways by any number of processes.

The store itself is in ``storage.hbase.store``, and not here: its client takes 0.1 s to import, which whoever only
names a store need not wait for.
"""

from storage.hbase.options import HbaseOptions, Place, TlsOptions, parse_place

__all__ = ["HbaseOptions", "Place", "TlsOptions", "parse_place"]
