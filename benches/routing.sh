#!/bin/bash
# Time and memory of routing: each engine, the proof of its tables, and one lost cable, at 648, 2,592, 11,664 and 45,056 hosts, beside
# opensm where it finishes.
#
#   benches/routing.sh [-e ENGINE[,ENGINE…]] [-t SECONDS] [FABRIC…]    (default: all fabrics; minhop,updn,ftree; -t 120)
#
# Fabrics: 648, 1458 (three levels; where opensm's slower engines were first measured), 2592, 11664, 45056. One process for each row.
# - route, check: wall/processor milliseconds from nothing, the best of five (of one for dfsssp, nue and lash).
# - tables, proof, order: the same, the best of twenty, for one cable lost from a standing state; a row for a cable of a switch with
#   hosts (leaf) and one for a cable between others (top).
# - entries: table entries that this changes. MB: peak resident size.
# - opensm: milliseconds from "building routing" to "tables configured" in its log, on ibsim, once; MB its peak; "-" where it does not
#   finish in -t seconds or refuses. It is not tried above 2,592 hosts unless OPENSM_MAX says so.
# Debian packages: opensm ibsim-utils libumad2sim0 python3. RSM_NO_BUILD=1 takes the binaries as they are.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
declare -A fabrics=(
  [648]="xgft -m 18,36 -w 1,18"
  [1458]="xgft -m 9,9,18 -w 1,9,9"
  [2592]="xgft -m 12,12,18 -w 1,12,12"
  [11664]="xgft -m 18,18,36 -w 1,18,18"
  [45056]="xgft -m 32,32,44 -w 1,32,32"
)
order=(648 2592 11664 45056)
engines=minhop,updn,ftree limit=120 chosen=()
while [ $# -gt 0 ]; do
  case $1 in
    -e) engines=${2:?}; shift ;;
    -t) limit=${2:?}; shift ;;
    -*) sed -n '2,5s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
    *) [ -n "${fabrics[$1]:-}" ] || { echo "no fabric $1; there are: ${!fabrics[*]}" >&2; exit 2; }; chosen+=("$1") ;;
  esac
  shift
done
[ ${#chosen[@]} -gt 0 ] || chosen=("${order[@]}")
target=${CARGO_TARGET_DIR:-$here/target}
[ -n "${RSM_NO_BUILD:-}" ] || (cd "$here" && cargo build --release --quiet -p cli --bin rsm && cargo build --release --quiet -p routing --example speed)
rsm=${RSM:-$target/release/rsm} speed=${SPEED:-$target/release/examples/speed}
preload=/usr/lib/x86_64-linux-gnu/umad2sim/libumad2sim.so
PATH=$PATH:/usr/sbin:/sbin
export LC_ALL=C
work=$(mktemp -d)
sim_pid=''
finish() {
  [ -z "$sim_pid" ] || kill "$sim_pid" 2>/dev/null || true
  rm -rf "$work"
}
trap finish EXIT

opensm_times() { # NET ENGINE: "MS MB", or "- -"; runs in a subshell
  local dir sim n s p l
  dir=$(mktemp -d "$work/sim.XXXXXX") sim=rsmrouting-${dir##*.}
  trap '[ -z "$sim_pid" ] || kill "$sim_pid" 2>/dev/null || true' EXIT
  mkfifo "$dir/console"
  eval "$(sed -n '1s/^# nodes=\([0-9]*\) switches=\([0-9]*\) ports=\([0-9]*\) lids=\([0-9]*\).*/n=\1 s=\2 p=\3 l=\4/p' "$1")"
  (cd "$dir" && IBSIM_SOCKNAME=$sim exec ibsim -s -N $((n + 8)) -S $((s + 8)) -P $((p + 64)) -L $(((l * 2 / 64 + 2) * 64)) "$1" \
    <>"$dir/console" >"$dir/out" 2>"$dir/err") &
  sim_pid=$!
  until grep -q 'Network simulator ready' "$dir/out" 2>/dev/null; do
    kill -0 "$sim_pid" || { cat "$dir/err" >&2; exit 1; }
    sleep 0.05
  done
  python3 - "$dir" "$sim" "$2" "$limit" "$preload" <<'PYTHON'
import datetime, os, re, signal, subprocess, sys, time
dir, sim, engine, limit, preload = sys.argv[1:]
env = dict(os.environ, IBSIM_SOCKNAME=sim, SIM_HOST="H0", LD_PRELOAD=preload, OSM_TMP_DIR=dir, OSM_CACHE_DIR=dir)
run = subprocess.Popen(["opensm", "-o", "-D", "0x07", "-R", engine, "-f", dir + "/log"], cwd=dir, env=env,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
stamp = re.compile(r"^(\w+ \d+ \d+:\d+:\d+) (\d+) .*-> (.*)")
peak, began, ended, position, rest, deadline = 0, None, None, 0, "", time.time() + float(limit)
while ended is None and time.time() < deadline and run.poll() is None:
    time.sleep(0.05)
    try:
        peak = max([peak] + [int(l.split()[1]) for l in open(f"/proc/{run.pid}/status") if l.startswith("VmHWM")])
        with open(dir + "/log", errors="replace") as log:
            log.seek(position)
            # The last line may not be whole yet.
            *lines, rest = (rest + log.read()).split("\n")
            position = log.tell()
    except FileNotFoundError:
        continue
    for found in filter(None, map(stamp.match, lines)):
        at = datetime.datetime.strptime("2000 " + found[1], "%Y %b %d %H:%M:%S") + datetime.timedelta(microseconds=int(found[2]))
        if f"building routing with '{engine}'" in found[3]:
            began = at
        elif began and f"{engine} tables configured" in found[3]:
            ended = at
run.send_signal(signal.SIGKILL)
run.wait()
print(f"{(ended - began).total_seconds() * 1e3:.1f} {peak // 1024}" if ended else "- -")
PYTHON
  kill "$sim_pid" 2>/dev/null || true; wait "$sim_pid" 2>/dev/null || true; sim_pid=''
}

echo "$(date +%F), load $(cut -d' ' -f1 /proc/loadavg), $(nproc) processors, opensm $(opensm --version 2>/dev/null | sed -n 's/^OpenSM \([0-9.]*\).*/\1/p' | head -1)"
# What bounds every engine: each byte of the tables is written once. Processor time, since the machine may be busy.
filled=$(TIMEFORMAT='%U %S'; { time dd if=/dev/zero of=/dev/null bs=256M count=8 2>/dev/null; } 2>&1)
awk -v t="$filled" 'BEGIN { split(t, s, " "); b = 8 * 256 * 2^20 / (s[1] + s[2]) / 1e9
  printf "memory is filled at %.1f GB/s: tables of 11,664 hosts (21.6 MB) in %.1f ms, of 45,056 (188 MB) in %.0f ms\n", b, 21.6 / b, 188 / b }'
echo
echo "| hosts | switches | engine | route | check | lost | tables | proof | order | entries | MB | opensm route | MB |"
echo "|---|---|---|---|---|---|---|---|---|---|---|---|---|"
for size in "${chosen[@]}"; do
  net=$work/$size.net
  # shellcheck disable=SC2086
  "$rsm" generate ${fabrics[$size]} -o "$net"
  for engine in ${engines//,/ }; do
    rounds=5 lost=20
    case $engine in dfsssp|nue|lash) rounds=1 lost=1 ;; esac
    rows=$(NET=$net ROUNDS=$rounds LOST=$lost "$speed" "$engine" | tail -n +2)
    theirs='- -'
    [ "$size" -gt "${OPENSM_MAX:-2592}" ] || theirs=$(opensm_times "$net" "$engine")
    while read -r row; do
      # An engine that refuses says why.
      case $row in *leaf*|*top*) row=$(sed 's/  */ | /g' <<<"$row") ;; esac
      echo "| $row | ${theirs/ / | } |"
    done <<<"$rows"
  done
done
