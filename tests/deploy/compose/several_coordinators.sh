# The profile ha of docker/compose.yaml: sourced by run, which has $docker, $image, $project, $scratch and the functions.
#
# Two coordinators on three etcd, and two workers that know both: the leader is killed, and the other one goes on.

etcd_image=chorus-etcd:test-$$
export ETCD_IMAGE=$etcd_image

# Of docker/etcd.Dockerfile; of the etcd that is installed here, where a container cannot reach Debian.
have_etcd_image() {
  timeout 120 "$docker" build -q -f docker/etcd.Dockerfile -t "$etcd_image" . >"$scratch/etcd-build.log" 2>&1 && return
  say "docker/etcd.Dockerfile does not build here ($(tail -n 1 "$scratch/etcd-build.log")): the image is made of the etcd of this machine"
  mkdir -p "$scratch/etcd"
  cp "$(command -v etcd)" "$scratch/etcd/etcd"
  printf 'FROM %s\nCOPY etcd /usr/bin/etcd\nRUN install -d -m 700 -o 65532 -g 65532 /var/lib/etcd\nUSER 65532:65532\n' \
    "$base_image" >"$scratch/etcd/Dockerfile"
  "$docker" build -q -t "$etcd_image" "$scratch/etcd" >/dev/null
}

# An address of the published port: the engine draws another one when it starts a container again.
url_of() { echo "http://$("$docker" port "$1" "$2/tcp" | head -n 1)"; }
status_of() { curl -s -o /dev/null -w '%{http_code}' --max-time 2 "$(url_of "$1" 7070)/readyz" || true; }

# Sets $leader to the container that leads, of those that are named.
find_leader() {
  local one
  for _ in $(seq 300); do
    for one in "$@"; do
      if [ "$(status_of "$one")" = 200 ]; then leader=$one; return; fi
    done
    sleep 0.1
  done
  fail "none of $# coordinators leads: $(for one in "$@"; do curl -s --max-time 2 "$(url_of "$one" 7070)/readyz"; done)"
}

# metric CONTAINER NAME
metric() { call "$(url_of "$1" 7070)/metrics" | sed -n "s/^$2 //p"; }

check_several_coordinators() {
  have_etcd_image
  say "compose up of the profile ha"
  dc --profile ha up -d --no-build worker-ha >/dev/null
  local a b one killed survivor term workers state
  a=$(container coordinator-a)
  b=$(container coordinator-b)
  [ -z "$(container coordinator)" ] || fail "the profile ha starts the coordinator with a journal"
  find_leader "$a" "$b"
  coordinator=$(url_of "$leader" 7070)
  token=$("$docker" exec "$leader" cat /run/chorus/submit)
  for _ in $(seq 300); do [ "$(ids | wc -l)" -eq 2 ] && break; sleep 0.1; done
  [ "$(ids | wc -l)" -eq 2 ] || fail "two workers do not join a leader on etcd: $(ids)"
  workers=$(dc ps -q worker-ha)
  put_at() { call -o /dev/null -T "$2" -H 'Tensor-Dtype: i32' -H 'Tensor-Shape: 2' "$(url_of "$1" 7071)/v1/tensors/x"; }
  sum_at() { call "$(url_of "$1" 7071)/v1/tensors/x" | od -An -td4 | xargs; }
  put_at "$(sed -n 1p <<<"$workers")" "$scratch/a"
  put_at "$(sed -n 2p <<<"$workers")" "$scratch/b"
  call -o /dev/null -X PUT "$coordinator/v1/groups/g" -d '{"size":2,"on_failure":"shrink"}'
  launch | grep -q '"state":"succeeded"' || fail "a leader on etcd runs no collective"
  for one in $workers; do [ "$(sum_at "$one")" = "6 8" ] || fail "the sum of a leader on etcd is $(sum_at "$one"), not 6 8"; done
  term=$(metric "$leader" chorus_leadership_term)

  killed=$leader survivor=$a
  [ "$killed" != "$a" ] || survivor=$b
  [ "$(metric "$killed" chorus_coordinator_leading) $(metric "$survivor" chorus_coordinator_leading)" = "1 0" ] ||
    fail "the metrics do not say who leads"
  say "killing the leading coordinator"
  # The engine does not start it again: started at once, it might be elected again.
  "$docker" kill -s KILL "$killed" >/dev/null
  find_leader "$survivor"
  say "the other coordinator leads"
  # By the list of coordinators, of which the first may be the one that was killed.
  "$docker" exec -e CHORUS_TOKEN_FILE=/run/chorus/submit \
    -e CHORUS_COORDINATOR=http://coordinator-a:7070,http://coordinator-b:7070 "$survivor" \
    chorus run all_reduce --group g --tensor x >"$scratch/second" 2>&1 || fail "after the leader was killed: $(cat "$scratch/second")"
  for one in $workers; do [ "$(sum_at "$one")" = "12 16" ] || fail "the second sum is $(sum_at "$one"), not 12 16"; done
  [ "$(metric "$survivor" chorus_leadership_term)" -gt "$term" ] || fail "the term did not rise"
  "$docker" start "$killed" >/dev/null
  for _ in $(seq 300); do
    state=$(curl -s --max-time 2 "$(url_of "$killed" 7070)/readyz" || true)
    grep -q 'a standby; http://coordinator-[ab]:7070 leads' <<<"$state" && break
    sleep 0.1
  done
  grep -q 'a standby; http://coordinator-[ab]:7070 leads' <<<"$state" || fail "the coordinator that was killed is no standby: $state"
  [ "$(metric "$killed" chorus_coordinator_leading) $(metric "$survivor" chorus_coordinator_leading)" = "0 1" ] ||
    fail "the metrics do not say who leads after a takeover"
  say "after a leader was killed the sums are right; started again it is a standby"
}
