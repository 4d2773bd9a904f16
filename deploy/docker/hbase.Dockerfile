# A single HBase with its Thrift gateway and shell: docker build -f deploy/docker/hbase.Dockerfile -t dupwatch-hbase .
# To try dupwatch on one machine; a real cluster has its own HBase.
ARG BASE=docker.io/library/debian:bookworm-slim

FROM ${BASE} AS java
RUN apt-get update \
 && apt-get install --yes --quiet --no-install-recommends openjdk-17-jre-headless \
 && rm -rf /var/lib/apt/lists /var/cache/apt

# The jars of deploy/local, so these are the versions that the tests use.
FROM java AS jars
RUN apt-get update && apt-get install --yes --quiet --no-install-recommends maven python3
WORKDIR /build
COPY deploy/__init__.py deploy/
COPY deploy/local deploy/local
ARG MVN_ARGS=
RUN python3 -c 'from deploy.local import fetch; fetch.jars().rename("/servers")'

FROM java
RUN useradd --uid 10002 --user-group --no-create-home --home-dir /tmp --shell /usr/sbin/nologin hbase \
 && install --directory --owner hbase --group hbase /var/lib/hbase
COPY --from=jars /servers/hbase /opt/hbase/lib
COPY --from=jars /servers/shell /opt/hbase/shell
COPY --from=jars /servers/ruby /opt/hbase/ruby
COPY deploy/docker/hbase/conf /opt/hbase/conf
COPY --chmod=755 deploy/docker/hbase/hbase deploy/docker/hbase/healthy /opt/hbase/bin/
ENV PATH=/opt/hbase/bin:$PATH
USER 10002:10002
WORKDIR /var/lib/hbase
EXPOSE 9090
HEALTHCHECK --interval=5s --timeout=8s --start-period=90s --retries=5 CMD ["healthy"]
ENTRYPOINT ["hbase"]
CMD ["serve"]
