# dupwatch: docker build -f deploy/docker/consumer.Dockerfile -t dupwatch .
# The final image has Python and the locked packages, and no build tools. It writes to /tmp only.
ARG BASE=docker.io/library/debian:bookworm-slim

FROM ${BASE} AS python
RUN apt-get update \
 && apt-get install --yes --quiet --no-install-recommends ca-certificates python3 \
 && rm -rf /var/lib/apt/lists /var/cache/apt

FROM python AS packages
RUN apt-get update && apt-get install --yes --quiet --no-install-recommends python3-venv
WORKDIR /build
RUN python3 -m venv .
# Of all extras; the one for plots is not installed below.
COPY requirements-extras.lock ./
RUN bin/pip wheel --quiet --use-pep517 --require-hashes --wheel-dir wheels --requirement requirements-extras.lock

# The compiled engine: Rust stays in this stage.
FROM packages AS core
RUN apt-get update && apt-get install --yes --quiet --no-install-recommends cargo-web gcc libc6-dev rustc-web
COPY requirements-core.lock ./
RUN bin/pip install --quiet --require-hashes --requirement requirements-core.lock \
 && bin/pip install --quiet --no-index --find-links wheels jieba
# core has links to these.
COPY LICENSE NOTICE ./
COPY consumer/workers/traditional_chinese.tsv consumer/workers/letters.tsv consumer/workers/decorations.tsv consumer/workers/
COPY core core
RUN PATH="/build/bin:$PATH" PYO3_PYTHON=/build/bin/python bin/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir built ./core

FROM packages AS build
# The build requirements of our own wheel are locked too.
RUN bin/pip install --quiet --no-index --find-links wheels hatchling
COPY pyproject.toml README.md LICENSE NOTICE ./
COPY consumer consumer
COPY dupwatch dupwatch
COPY storage storage
COPY sample/feed.jsonl sample/
RUN bin/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir wheels .
COPY --from=core /build/built wheels
# Install from those wheels only, as locked; build tools and pip stay behind.
RUN python3 -m venv --without-pip /opt/dupwatch \
 && bin/pip --quiet --python /opt/dupwatch/bin/python install --no-index --find-links wheels 'dupwatch[console,console-postgresql,pages,schemas,serve,tracing]' dupwatch-core

FROM python
RUN useradd --uid 10001 --user-group --no-create-home --home-dir /tmp --shell /usr/sbin/nologin dupwatch \
 && install --directory --owner dupwatch --group dupwatch /var/lib/dupwatch
COPY --from=build /opt/dupwatch /opt/dupwatch
ENV PATH=/opt/dupwatch/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
# A number, so that Kubernetes can check that this is not root.
USER 10001:10001
WORKDIR /var/lib/dupwatch
EXPOSE 9464
# Asks the pages at the address in the configuration, which comes from the environment as in the run.
HEALTHCHECK --interval=30s --timeout=15s --start-period=60s --retries=3 CMD ["dupwatch", "health"]
ENTRYPOINT ["dupwatch"]
CMD ["run"]
