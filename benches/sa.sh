#!/bin/bash
# Subnet administration of rsm and of opensm on the same emulated fabric (`rsm emulate`), asked by `rsm load`.
#
#   benches/sa.sh [-t SECONDS] [648] [2592]        (default: 5 seconds a row, 648 and 2592)
#
# Prints a Markdown table. Programs take turns; each gets a fresh emulator. A client is a process on a host of its own.
# - rate: answers a second over all clients; latencies: median of the clients' medians, worst 99th percentile, worst of all.
# - CPU: user and system time of the manager over the row, by answers.
# - "asleep": the manager sleeps until a request comes (RSM_LOOK=0) where in other rows it looks for it for up to 0.2 ms, which is
#   most of the processor time of who has nothing else to do.
# - "sweeping": the same while the manager is told to sweep everything anew (SIGHUP), twice a second.
# Machine and load are in the first line: everything, the emulator and the clients too, runs on this machine.
# Debian packages: opensm python3. RSM_NO_BUILD=1 takes the binaries as they are.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
seconds=5 sizes=()
while [ $# -gt 0 ]; do
  case $1 in
    -t) seconds=${2:?}; shift ;;
    36 | 648 | 2592) sizes+=("$1") ;;
    *) sed -n '2,4s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
  shift
done
[ ${#sizes[@]} -gt 0 ] || sizes=(648 2592)
target=${CARGO_TARGET_DIR:-$here/target}/release
[ -n "${RSM_NO_BUILD:-}" ] || (cd "$here" && cargo build --release --quiet -p cli --bin rsm && cargo build --release --quiet -p rsm-preload)
rsm=$target/rsm
PATH=$PATH:/usr/sbin:/sbin
export LC_ALL=C TZ=UTC
work=$(mktemp -d)
emulator='' manager=''
finish() {
  for p in $manager $emulator; do kill "$p" 2>/dev/null || true; done
  wait 2>/dev/null || true
  rm -rf "$work"
}
trap finish EXIT

net_of() {
  case $1 in
    36 | 648) echo "$here/testdata/nets/tree$1.net" ;;
    *)
      [ -e "$work/tree$1.net" ] || python3 "$here/testdata/nets/make.py" large "$work"
      echo "$work/tree$1.net"
      ;;
  esac
}

# NODE PROGRAM...: becomes the program, so call it in a subshell, whose process ID is then the program's.
on() { cd "$dir" && RSM_EMULATE=$dir/fabric RSM_NODE=$1 LD_PRELOAD=$target/librsm_preload.so exec "${@:2}"; }

start() { # rsm | opensm, SIZE
  dir=$work/$1$2; mkdir -p "$dir/osm"
  "$rsm" emulate "$(net_of "$2")" --dir "$dir/fabric" --log-level error </dev/null >"$dir/emulator.out" 2>&1 &
  emulator=$!
  until [ -e "$dir/fabric/socket" ]; do
    kill -0 "$emulator" || { cat "$dir/emulator.out" >&2; exit 1; }
    sleep 0.05
  done
  case $1 in
    rsm) (on H0 "$rsm" run --state-dir "$dir/state" --log-level info >"$dir/manager.out" 2>"$dir/log") & ;;
    opensm)
      printf 'force_log_flush TRUE\nsweep_interval 0\n' >"$dir/opensm.conf"
      (OSM_TMP_DIR=$dir/osm OSM_CACHE_DIR=$dir/osm on H0 opensm -F "$dir/opensm.conf" -f "$dir/log" >"$dir/manager.out" 2>&1) &
      ;;
  esac
  manager=$!
  until grep -qs -e 'SUBNET UP' -e ' fabric configured ' "$dir/log"; do
    kill -0 "$manager" || { cat "$dir/manager.out" "$dir/log" >&2; exit 1; }
    sleep 0.1
  done
  sleep 3
}
stop() {
  kill "$manager"; wait "$manager" 2>/dev/null || true; manager=''
  kill "$emulator"; wait "$emulator" 2>/dev/null || true; emulator=''
  rm -rf "$dir"
}
ticks() { awk '{ print $14 + $15 }' "/proc/$manager/stat"; }

row() { # NAME WHAT CLIENTS ARGUMENT...: a row of the table
  local name=$1 what=$2 clients=$3 pids=() i before
  shift 3
  before=$(ticks)
  for i in $(seq "$clients"); do
    (on "H$i" "$rsm" load "$@" --json >"$work/load$i" 2>"$work/error$i") & pids+=($!)
  done
  for i in "${pids[@]}"; do wait "$i" || true; done
  python3 - "$name" "$what" "$clients" "$(($(ticks) - before))" "$work" >>"$work/rows" <<'P'
import json, os, statistics, sys
name, what, clients, ticks, work = sys.argv[1:]
all = []
for i in range(1, int(clients) + 1):
    text = open(f"{work}/load{i}").read()
    if not text:
        print(f"| {name} | {what} | {clients} | none: {open(f'{work}/error{i}').read().strip()} | | | | | |")
        sys.exit()
    all.append(json.loads(text))
right = sum(f["right"] for f in all)
failed = sum(f["wrong"] + f["refused"] + f["lost"] for f in all)
cpu = float(ticks) / os.sysconf("SC_CLK_TCK") / max(right, 1) * 1e6
print(f'| {name} | {what} | {clients} | {sum(f["per_second"] for f in all):.0f} | {statistics.median(f["median_ms"] for f in all):.3f} '
      f'| {max(f["p99_ms"] for f in all):.2f} | {max(f["most_ms"] for f in all):.1f} | {cpu:.1f} | {failed} |')
P
  tail -1 "$work/rows" >&2
}

rows() { # rsm | opensm
  local window
  for window in 1 16 64; do
    row "$1" "path, window $window" 1 path --window "$window" --seconds "$seconds"
    row "$1" "path, window $window" 8 path --window "$window" --seconds "$seconds"
  done
  row "$1" "join and leave, window 16" 1 join --window 16 --seconds "$seconds"
  row "$1" "join and leave, window 16" 8 join --window 16 --seconds "$seconds"
  row "$1" "services, window 16" 8 service --window 16 --seconds "$seconds"
  row "$1" "all paths, window 1" 1 all-paths --window 1 --count 3 --timeout 60000
  (while sleep 0.5; do kill -HUP "$manager"; done) & local hups=$!
  row "$1" "path, window 1, sweeping" 1 path --window 1 --seconds $((2 * seconds)) --timeout 10000
  row "$1" "path, window 16, sweeping" 8 path --window 16 --seconds $((2 * seconds)) --timeout 10000
  kill "$hups"; wait "$hups" 2>/dev/null || true
}

echo "$(date +%F), $(nproc) x $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), load $(cut -d' ' -f1 /proc/loadavg)"
for size in "${sizes[@]}"; do
  : >"$work/rows"
  for name in rsm opensm; do
    start "$name" "$size"
    rows "$name"
    stop
    RSM_LOOK=0 start "$name" "$size"
    row "$name" "path, window 1, asleep" 1 path --window 1 --seconds "$seconds"
    stop
  done
  echo
  echo "$size hosts:"
  echo
  echo "| program | requests | clients | answers a second | median ms | 99% ms | most ms | CPU us each | failed |"
  echo "|---|---|---|---|---|---|---|---|---|"
  cat "$work/rows"
done
