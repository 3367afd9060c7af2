#!/bin/bash
# Routes of rsm beside those of opensm, on the same fabrics with the same LIDs, from opensm's own dumps.
#
#   benches/routes.sh [-n ROUNDS] [-e ENGINE[,ENGINE…]] [FABRIC…]     (default: all fabrics; -n 1000; minhop,updn,ftree,dfsssp)
#
# For each fabric `rsm generate` makes the cabling, opensm routes it on ibsim (-o, once) and dumps LIDs and tables, and
# `rsm simulate traffic` takes both sets of tables through the same patterns. Prints a Markdown table:
# - worst and mean: routes between hosts over a link between switches, each direction for itself (all-to-all).
# - bandwidth: effective bisection bandwidth over ROUNDS random bisections from one seed, 1 = the whole of a host's link.
# A row in which rsm is worse by more than 2 % ends with "worse", and the exit code is 1.
# Debian packages: opensm ibsim-utils libumad2sim0 python3. RSM_NO_BUILD=1 takes the binary as it is.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
declare -A fabrics=(
  [tree648]="xgft -m 18,36 -w 1,18"
  [tree216]="xgft -m 6,6,6 -w 1,6,6"
  [parallel]="xgft -m 8,8 -w 1,4 -p 1,2"
  [blocking]="xgft -m 8,6,4 -w 1,4,3"
  [damaged]="xgft -m 8,8,4 -w 1,8,4 --missing-links 5"
  [lost-cable]="xgft -m 18,36 -w 1,18 --missing-links 0.2"
  [gaps]="xgft -m 8,6,4 -w 1,4,3 --missing-links 15 --seed 6"
  [torus]="torus 4x4x4 --hosts 2"
  [dragonfly]="dragonfly -p 2 -a 4 --global 2"
  [dragonfly-plus]="dragonfly-plus -p 4 --leaves 4 --spines 4 --global 4 -g 5"
  [hyperx]="hyperx 4x4x3 --hosts 3"
  [random]="random-regular --switches 30 --degree 6 --hosts 4"
)
order=(tree648 tree216 parallel blocking damaged lost-cable gaps torus dragonfly dragonfly-plus hyperx random)
rounds=1000 engines=minhop,updn,ftree,dfsssp chosen=()
while [ $# -gt 0 ]; do
  case $1 in
    -n) rounds=${2:?}; shift ;;
    -e) engines=${2:?}; shift ;;
    -*) sed -n '2,4s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
    *) [ -n "${fabrics[$1]:-}" ] || { echo "no fabric $1; there are: ${order[*]}" >&2; exit 2; }; chosen+=("$1") ;;
  esac
  shift
done
[ ${#chosen[@]} -gt 0 ] || chosen=("${order[@]}")
target=${CARGO_TARGET_DIR:-$here/target}
[ -n "${RSM_NO_BUILD:-}" ] || (cd "$here" && cargo build --release --quiet -p cli --bin rsm)
rsm=${RSM:-$target/release/rsm}
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

run=0
start_sim() { # NET
  run=$((run + 1)); sim=rsmroutes$$-$run; dir=$work/sim$run; mkdir "$dir"; mkfifo "$dir/console"
  local n s p l
  eval "$(sed -n '1s/^# nodes=\([0-9]*\) switches=\([0-9]*\) ports=\([0-9]*\) lids=\([0-9]*\).*/n=\1 s=\2 p=\3 l=\4/p' "$1")"
  (cd "$dir" && IBSIM_SOCKNAME=$sim exec ibsim -s -N $((n + 8)) -S $((s + 8)) -P $((p + 64)) -L $(((l * 2 / 64 + 2) * 64)) "$1" \
    <>"$dir/console" >"$dir/out" 2>"$dir/err") &
  sim_pid=$!
  until grep -q 'Network simulator ready' "$dir/out" 2>/dev/null && grep -qF "@$sim:ctl" /proc/net/unix; do
    kill -0 "$sim_pid" || { cat "$dir/err" >&2; exit 1; }
    sleep 0.02
  done
}
stop_sim() { kill "$sim_pid" 2>/dev/null || true; wait "$sim_pid" 2>/dev/null || true; sim_pid=''; }

dump() { # NET ENGINE: opensm's dumps in $work/osm, or nothing there when it refuses
  rm -rf "$work/osm"; mkdir "$work/osm"
  start_sim "$1"
  (cd "$dir" && IBSIM_SOCKNAME=$sim SIM_HOST=H0 LD_PRELOAD=$preload OSM_TMP_DIR=$work/osm OSM_CACHE_DIR=$work/osm \
    timeout 20 opensm -o -D 0x43 -R "$2" -f "$dir/log" >"$dir/manager.out" 2>&1) || true
  # It falls back on minhop where an engine refuses, and says so in its log only.
  grep -q "osm_ucast_mgr_process: $2 tables configured" "$dir/log" || rm -f "$work/osm/opensm.fdbs"
  stop_sim
}

study() { # PATTERN TOPOLOGY ENGINE OUT [TABLES]
  "$rsm" simulate traffic "$2" --engine "$3" ${5:+--tables "$5"} --pattern "$1" --rounds "$rounds" --json >"$4" || true
}

echo "$(date +%F), opensm $(opensm --version 2>/dev/null | sed -n 's/^OpenSM \([0-9.]*\).*/\1/p' | head -1), $rounds bisections"
echo
echo "| fabric | engine | worst: opensm | rsm | mean: opensm | rsm | bandwidth: opensm | rsm | |"
echo "|---|---|---|---|---|---|---|---|---|"
worse=0
for name in "${chosen[@]}"; do
  net=$work/$name.net
  # shellcheck disable=SC2086
  "$rsm" generate ${fabrics[$name]} -o "$net"
  for engine in ${engines//,/ }; do
    dump "$net" "$engine"
    topology=$work/osm/opensm-subnet.lst tables=$work/osm/opensm.fdbs
    [ -s "$tables" ] || tables=''
    for pattern in alltoall bisection; do study $pattern "$topology" "$engine" "$work/$pattern.json" "$tables"; done
    python3 - "$name" "$engine" "$work" <<'PYTHON' || worse=1
import json, sys
name, engine, work = sys.argv[1:]
def load(pattern):  # nothing is written where an engine refuses and there is no dump beside it
    text = open(f"{work}/{pattern}.json").read()
    return ([s["congestion"] for s in json.loads(text or "[]")] + [None, None])[:2]
(ours, theirs), (our_halves, their_halves) = load("alltoall"), load("bisection")
if ours is None or theirs is None:
    cell = lambda c, text, why: why if c is None else text(c)
    worst = [cell(c, lambda c: f"{c['worst']['max']:.0f}", "refuses") for c in (theirs, ours)]
    mean = [cell(c, lambda c: f"{c['mean_load']:.1f}", "") for c in (theirs, ours)]
    halves = [cell(c, lambda c: f"{c['bandwidth']['mean']:.3f}", "") for c in (their_halves, our_halves)]
    print(f"| {name} | {engine} | " + " | ".join(worst + mean + halves) + " | |")
    sys.exit(0)
worst = [c["worst"]["max"] for c in (theirs, ours)]
halves = [c["bandwidth"]["mean"] for c in (their_halves, our_halves)]
bad = worst[1] > 1.02 * worst[0] or halves[1] < 0.98 * halves[0]
good = worst[1] < 0.98 * worst[0] or halves[1] > 1.02 * halves[0]
verdict = "worse" if bad else "better" if good else ""
print(f"| {name} | {engine} | {worst[0]:.0f} | {worst[1]:.0f} | {theirs['mean_load']:.1f} | {ours['mean_load']:.1f} | "
      f"{halves[0]:.3f} | {halves[1]:.3f} | {verdict} |")
sys.exit(bad)
PYTHON
  done
done
exit $worse
