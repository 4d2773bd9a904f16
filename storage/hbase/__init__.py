"""The shared store: HBase tables that any number of processes reach through Thrift gateways.

The store itself is in ``storage.hbase.store`` and not imported here: its client takes 0.1 s to import, which code that
only names a store should not pay.
"""

from storage.hbase.options import HbaseOptions, Place, TlsOptions, parse_place

__all__ = ["HbaseOptions", "Place", "TlsOptions", "parse_place"]
