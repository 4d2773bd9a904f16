"""The shared store: HBase tables that any number of processes reach through Thrift gateways.

The store itself is in ``storage.hbase.store`` and not imported here: its client takes 0.1 s to import, which code that
only names a store should not pay.

A call of the store has one deadline (``options.deadline_s``). Until it passes, ``calls`` repeats requests that failed,
with random pauses that double up to two seconds, and ``pool`` avoids gateways that failed, for up to half a minute,
while another can be reached; an answer may take ``options.call_s``. ``waits`` announces a wait of more than two
seconds. After the deadline the call raises ``StoreUnavailable``, and the caller decides whether to call again.
"""

from storage.hbase.options import HbaseOptions, StoreAddress, TlsOptions, parse_place

__all__ = ["HbaseOptions", "StoreAddress", "TlsOptions", "parse_place"]
