"""Runs servers on this machine, without containers, for tests and developers, with the standard library only.

::

    java.py       finds Java and Maven
    packages.py   finds the commands that tests need, and installs packages
    fetch.py      downloads the servers' jars, by Maven coordinates, into a cache outside the tree
    quick.py      makes Java start faster, for tests and the shell
    launch.py     runs a detached program with a log; kills it when its owner, if any, ends
    process.py    a running program: is it alive, terminate it, kill it
    ports.py      finds free ports, and checks what answers on a port
    server.py     a server as an object that can be started, stopped and killed
    java_server.py  a server in Java, with limited memory
    postgres.py   PostgreSQL
    kafka.py      the Kafka broker, alone or one of several
    hbase.py      HBase in one process, and its Thrift gateways
    hadoop.py     what programs of Hadoop and HBase have in common
    hdfs.py       name node and data node
    hbase_cluster.py  ZooKeeper, master and region servers
    cluster.py    three brokers, two region servers, and what they need
    formatted.py  new data that a server formats before its first start
    shell.py      the HBase shell
    regions.py    lists, moves and splits regions
    stack.py      Kafka, HBase and a gateway, or a cluster, for make stack-up, stack-down and stack-status

All servers listen on 127.0.0.1 only, and are found and ended by their process ids, never by name.
"""
