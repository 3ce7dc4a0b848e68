# Galata in a container: not root, and all that it keeps in the volume /data, config.yaml too.
FROM python:3.13-slim-bookworm AS build
WORKDIR /src
RUN python -m venv /opt/galata
COPY requirements/run.txt requirements/run.txt
RUN /opt/galata/bin/pip install --no-cache-dir --no-deps --require-hashes -r requirements/run.txt
COPY pyproject.toml README.md ./
COPY agent agent
COPY bridge bridge
COPY channels channels
COPY memory memory
RUN /opt/galata/bin/pip install --no-cache-dir --no-deps --no-build-isolation .

FROM python:3.13-slim-bookworm
RUN useradd --system --uid 10001 --user-group galata \
    && install --directory --owner=galata --group=galata --mode=0700 /data
COPY --from=build /opt/galata /opt/galata
ENV PATH=/opt/galata/bin:$PATH
USER galata
VOLUME /data
HEALTHCHECK --interval=60s --timeout=15s --start-period=60s \
    CMD ["galata", "status", "--data", "/data"]
ENTRYPOINT ["galata"]
CMD ["run", "--data", "/data", "--config", "/data/config.yaml"]
