# etcd as Debian has it, for the profile `ha` of docker/compose.yaml. ETCD_IMAGE names another image instead.
ARG BASE=debian:bookworm-slim
FROM ${BASE}
RUN apt-get update -q \
 && apt-get install -q -y --no-install-recommends etcd-server \
 && rm -rf /var/lib/apt/lists/* \
 && install -d -m 700 -o 65532 -g 65532 /var/lib/etcd
USER 65532:65532
EXPOSE 2379 2380
STOPSIGNAL SIGTERM
CMD ["etcd"]
