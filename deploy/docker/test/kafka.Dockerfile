# Replaces docker.io/apache/kafka in make compose-test: the same broker from Maven's jars, with the same paths and user,
# configured by the same class from the same environment variables.
ARG BASE=docker.io/library/debian:bookworm-slim

FROM ${BASE} AS java
RUN apt-get update \
 && apt-get install --yes --quiet --no-install-recommends openjdk-17-jre-headless \
 && rm -rf /var/lib/apt/lists /var/cache/apt

FROM java AS jars
RUN apt-get update && apt-get install --yes --quiet --no-install-recommends maven python3
WORKDIR /build
COPY deploy/__init__.py deploy/
COPY deploy/local deploy/local
ARG MVN_ARGS=
RUN python3 -c 'from deploy.local import fetch; fetch.jars().rename("/servers")'

FROM java
RUN useradd --uid 1000 --user-group --create-home appuser \
 && install --directory --owner appuser --group appuser /opt/kafka /opt/kafka/config /mnt/shared/config \
 && install --directory --owner appuser --group root /var/lib/kafka/data /etc/kafka/docker \
 && touch /etc/kafka/docker/server.properties /etc/kafka/docker/log4j.properties /etc/kafka/docker/tools-log4j.properties
COPY --from=jars /servers/kafka /opt/kafka/libs
COPY --chmod=755 deploy/docker/test/kafka /etc/kafka/docker/run
USER appuser
EXPOSE 9092
CMD ["/etc/kafka/docker/run"]
