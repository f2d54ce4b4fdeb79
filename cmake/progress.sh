# For scripts that run something long: sourced by them.
#
# with_progress LOG COMMAND...: runs it, with all that it prints in LOG, and gives its status. Meanwhile the step that LOG has
# come to is on standard error: on a terminal in one line that changes, elsewhere as a line every PROGRESS_SECONDS (20).
with_progress() {
  local log=$1 status=0 running monitor
  shift
  : >"$log"
  # It ends when nobody holds the other end of its input. A signal could meet it before it has let go of the script's traps.
  exec {running}> >(show_progress "$log")
  monitor=$!
  "$@" >"$log" 2>&1 {running}>&- || status=$?
  exec {running}>&-
  wait "$monitor" || true
  if [ -t 2 ]; then printf '\r\033[K' >&2; fi
  return "$status"
}

# Until its input ends.
show_progress() {
  local log=$1 began=$SECONDS told=$SECONDS step waited=142
  trap - EXIT INT TERM
  while [ "$waited" -gt 128 ]; do
    waited=0
    read -r -t 1 _ || waited=$?
    step=$(tail -c 65536 "$log" 2>/dev/null | grep -aoE '^ *(\[ *[0-9]+/[0-9]+\]|[0-9]+/[0-9]+ Test +#[0-9]+: [^ ]+)' | tail -n 1) || step=
    if [ -t 2 ]; then
      printf '\r\033[K  %s  %d s' "${step:-...}" $((SECONDS - began)) >&2
    elif [ $((SECONDS - told)) -ge "${PROGRESS_SECONDS:-20}" ]; then
      told=$SECONDS
      printf '  %s  %d s\n' "${step:-...}" $((SECONDS - began)) >&2
    fi
  done
}

# After a failure: the end of a log, which stays where it is. Ends the script.
log_failure() { tail -n 60 "$1"; echo "failed; all of the log is in $(realpath "$1")"; exit 1; }
