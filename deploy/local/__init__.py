"""Kafka and HBase on this machine, without containers, for tests and developers. Needs Python's standard library only.

::

    java.py       is there a Java and a Maven that will do
    fetch.py      the servers' jars, by Maven coordinates, into a cache outside of the tree
    quick.py      Java that starts sooner: for tests, and for the shell
    launch.py     runs a program by itself, with its log, perhaps on a leash: it ends when its owner does
    process.py    a program that runs: is it alive, end it, end it now
    ports.py      ports that are free, and who answers behind them
    server.py     a server as an object that is started, stopped and killed
    kafka.py      the Kafka broker
    hbase.py      HBase and its Thrift gateways
    shell.py      the HBase shell
    stack.py      one of each, for make stack-up, stack-down and stack-status

Everything listens on 127.0.0.1 only, and is found and ended by its process id, never by a name.
"""
