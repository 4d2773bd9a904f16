"""The shared store: HBase tables that any number of processes reach through Thrift gateways.

The store itself is in ``storage.hbase.store`` and not imported here: importing its client takes 0.1 s, which code that
only names a store should not spend.

A call of the store has one deadline (``options.deadline_s``). Until it passes, ``calls`` repeats failed requests, with
random pauses that double up to two seconds. ``pool`` avoids failed gateways for up to half a minute while another can
be reached. An answer may take ``options.call_s``. ``waits`` announces a wait of more than two seconds. After the
deadline the call raises ``StoreUnavailable`` unless a table is missing, and the caller decides whether to repeat it.
"""

from storage.hbase.options import HbaseOptions, StoreAddress, TlsOptions, parse_place

__all__ = ["HbaseOptions", "StoreAddress", "TlsOptions", "parse_place"]
