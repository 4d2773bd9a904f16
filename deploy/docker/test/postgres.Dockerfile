# Replaces docker.io/library/postgres in make compose-test: Debian's package of the same major version, with the same paths
# and user, and as much of the entry point as docker-compose.yml uses.
ARG BASE=docker.io/library/debian:bookworm-slim
FROM ${BASE}
RUN groupadd --system --gid 999 postgres \
 && useradd --system --uid 999 --gid 999 --home-dir /var/lib/postgresql --shell /bin/bash postgres \
 && apt-get update \
 && apt-get install --yes --quiet --no-install-recommends postgresql-15 \
 && rm -rf /var/lib/apt/lists /var/cache/apt /var/lib/postgresql \
 && install --directory --owner postgres --group postgres --mode 1777 /var/lib/postgresql/data /var/run/postgresql
COPY --chmod=755 deploy/docker/test/postgres /usr/local/bin/docker-entrypoint.sh
ENV PATH=/usr/lib/postgresql/15/bin:$PATH PGDATA=/var/lib/postgresql/data
VOLUME /var/lib/postgresql/data
EXPOSE 5432
# Ends connections and itself; SIGTERM would wait for clients.
STOPSIGNAL SIGINT
ENTRYPOINT ["docker-entrypoint.sh"]
CMD ["postgres"]
