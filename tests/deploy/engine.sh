# A Docker engine for the tests, and the base image: sourced. Leaves $docker, $compose and DOCKER_HOST.
#
# An engine that answers is used as it is. Otherwise Debian's is started with everything it keeps in $scratch, and stopped by
# stop_engine; that needs root. Where no registry is reachable the base is made with debootstrap and takes its official name.

docker=docker
# A client of another origin may stand before Debian's and lack its builder.
[ ! -x /usr/bin/docker ] || docker=/usr/bin/docker
export DOCKER_BUILDKIT=1 COMPOSE_DOCKER_CLI_BUILD=1
base_image=debian:bookworm-slim
engine_pid=

start_engine() {
  if timeout 20 "$docker" info >/dev/null 2>&1; then echo "engine: the one that runs here"; return; fi
  [ "$(id -u)" -eq 0 ] || { echo "deploy: skipped, no Docker engine answers, and starting one needs root"; exit 77; }
  export DOCKER_HOST=unix://$scratch/docker.sock
  dockerd --data-root "$scratch/data" --exec-root "$scratch/exec" --pidfile "$scratch/docker.pid" -H "$DOCKER_HOST" \
    --bip 172.31.253.1/24 --default-address-pool base=172.31.254.0/23,size=26 >"$scratch/dockerd.log" 2>&1 &
  engine_pid=$!
  for _ in $(seq 150); do
    if "$docker" info >/dev/null 2>&1; then echo "engine: started $("$docker" version -f '{{.Server.Version}}')"; return; fi
    kill -0 "$engine_pid" 2>/dev/null || break
    sleep 0.2
  done
  echo "deploy: skipped, dockerd does not start here; its last words:"
  tail -n 5 "$scratch/dockerd.log"
  exit 77
}

stop_engine() {
  [ -n "$engine_pid" ] || return 0
  kill "$engine_pid" 2>/dev/null || true
  wait "$engine_pid" 2>/dev/null || true
  # The engine leaves its bridge behind.
  ip link delete docker0 2>/dev/null || true
  # What a namespace still holds, if anything.
  awk -v below="$scratch/" 'index($2, below) == 1 { print $2 }' /proc/mounts | sort -r | while read -r mount; do umount -l "$mount" 2>/dev/null || true; done
}

find_compose() {
  if "$docker" compose version >/dev/null 2>&1; then compose="$docker compose"; else compose=docker-compose; fi
  $compose version >/dev/null 2>&1 || { echo "deploy: skipped, neither the compose plugin nor docker-compose runs here"; exit 77; }
}

# A root of Debian as an archive, of which `kept` is the path. Once made it is kept, as the packages are that the build needs.
have_base_archive() {
  kept=build/tools/base.tar.gz
  if [ ! -e "$kept" ]; then
    mkdir -p build/tools
    debootstrap --variant=minbase bookworm "$scratch/base" >"$scratch/debootstrap.log" 2>&1 || { tail -n 5 "$scratch/debootstrap.log"; exit 1; }
    # As the official slim image: without documentation and package lists.
    rm -rf "$scratch/base"/var/cache/apt/archives/*.deb "$scratch/base"/var/lib/apt/lists/* "$scratch/base"/usr/share/{doc,man,info,locale}/*
    tar -C "$scratch/base" -czf "$kept.new" . && mv "$kept.new" "$kept"
    rm -rf "$scratch/base"
  fi
}

have_base_image() {
  "$docker" image inspect "$base_image" >/dev/null 2>&1 && return
  timeout 60 "$docker" pull -q "$base_image" >/dev/null 2>&1 && { echo "base: pulled"; return; }
  have_base_archive
  "$docker" import "$kept" "$base_image" >/dev/null
  echo "base: made with debootstrap, no registry is reachable"
}
