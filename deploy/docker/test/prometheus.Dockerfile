# Replaces docker.io/prom/prometheus in make compose-test: Debian's package, with the same paths and user.
ARG BASE=docker.io/library/debian:bookworm-slim
FROM ${BASE}
RUN apt-get update \
 && apt-get install --yes --quiet --no-install-recommends prometheus \
 && rm -rf /var/lib/apt/lists /var/cache/apt \
 && install --directory --owner nobody --group nogroup /prometheus
USER nobody
WORKDIR /prometheus
EXPOSE 9090
ENTRYPOINT ["prometheus"]
