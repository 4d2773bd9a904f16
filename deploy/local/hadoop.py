"""The class path, Java options and configuration that the programs of Hadoop and HBase share."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

from deploy.local.ports import HOST

_OPENED: Final = ("java.nio", "sun.nio.ch", "java.lang", "java.lang.reflect", "java.util", "java.util.concurrent")
_LOG4J: Final = """\
log4j.rootLogger=WARN,console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.target=System.err
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d{ISO8601} %-5p [%.40t] %c{2}: %.1000m%n
log4j.logger.org.apache.hadoop.util.NativeCodeLoader=ERROR
log4j.logger.org.apache.hadoop.metrics2=ERROR
log4j.logger.org.apache.hadoop.hbase.master.HMaster=INFO
"""


def options() -> list[str]:
    """Return the options with which Hadoop and HBase run on newer versions of Java than they were written for."""
    return [
        "-Dorg.apache.hbase.thirdparty.io.netty.tryReflectionSetAccessible=true",
        "--add-modules=jdk.unsupported",
        *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in (*_OPENED, "jdk.internal.ref")),
        "--add-exports=java.base/jdk.internal.misc=ALL-UNNAMED",
        "--add-exports=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
    ]


def class_path(conf: Path, jars: Path) -> list[str]:
    """Return Java's arguments for the class path. HBase's jars include those of Hadoop and ZooKeeper."""
    # The folder comes last (see ``quick``), which is harmless: no jar contains a file with the name of a configuration
    # file.
    return ["-cp", f"{jars / 'hbase'}/*:{conf}"]


def hbase_client(zookeeper_port: int) -> dict[str, str]:
    """Return the settings that every client of an HBase needs."""
    return {
        "hbase.zookeeper.quorum": HOST,
        "hbase.zookeeper.property.clientPort": str(zookeeper_port),
        "hbase.client.retries.number": "6",
        "hbase.thrift.info.port": "-1",
        "hbase.io.compress.snappy.codec": "org.apache.hadoop.hbase.io.compress.aircompressor.SnappyCodec",
    }


def write_conf(folder: Path, settings: Mapping[str, str], name: str = "hbase-site.xml", *, info: str = "") -> None:
    """Write a configuration file, and one for the log.

    The log has warnings, and the INFO messages of HBase's master and of the class ``info``.
    """
    folder.mkdir(parents=True, exist_ok=True)
    properties = "\n".join(
        f"  <property><name>{escape(setting)}</name><value>{escape(value)}</value></property>"
        for setting, value in settings.items()
    )
    (folder / name).write_text(
        f'<?xml version="1.0"?>\n<configuration>\n{properties}\n</configuration>\n', encoding="utf-8"
    )
    more = f"log4j.logger.{info}=INFO\n" if info else ""
    (folder / "log4j.properties").write_text(_LOG4J + more, encoding="ascii")
