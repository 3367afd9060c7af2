#!/bin/bash
# Bring-up of a simulated fabric by rsm and by opensm, on the same simulator in the same run.
#
#   benches/bringup.sh [-n REPEATS] [36] [648] [2592] [11664]     (default: 36 648 2592)
#
# Prints a Markdown table: seconds from the program's start to its "up", datagrams sent, peak memory, each also as opensm's
# over rsm's, and rsm's time over what the simulator itself takes to answer as many datagrams to one client with 64 in
# flight. Medians of REPEATS (3). Every run gets a fresh ibsim and an empty state. Datagrams are counted by ibsim: what
# the manager's port has sent, read by perfquery afterwards.
# Needs opensm, ibsim-utils, libumad2sim0, infiniband-diags, python3.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
repeats=3
[ "${1:-}" = -n ] && { repeats=$2; shift 2; }
sizes=("$@")
[ $# -gt 0 ] || sizes=(36 648 2592)
target=${CARGO_TARGET_DIR:-$here/target}
[ -n "${RSM_NO_BUILD:-}" ] || (cd "$here" && cargo build --release --quiet -p cli --bins --examples)
rsm=$target/release/rsm flood=$target/release/examples/flood
preload=/usr/lib/x86_64-linux-gnu/umad2sim/libumad2sim.so
PATH=$PATH:/usr/sbin:/sbin
export LC_ALL=C
work=$(mktemp -d)
pids=()
finish() { for p in "${pids[@]}"; do kill "$p" 2>/dev/null || true; done; rm -rf "$work"; }
trap finish EXIT
now() { date +%s.%N; }
since() { awk -v a="$1" -v b="$(now)" 'BEGIN { printf "%.4f", b - a }'; }

net_of() {
  case $1 in
    36 | 648) echo "$here/testdata/nets/tree$1.net" ;;
    *)
      [ -e "$work/tree$1.net" ] || python3 "$here/testdata/nets/make.py" large "$work"
      echo "$work/tree$1.net"
      ;;
  esac
}

run=0
start_sim() { # NET: a fresh ibsim, its name in $sim, its folder in $dir
  run=$((run + 1)); sim=rsmbench$$-$run; dir=$work/$run; mkdir "$dir"; mkfifo "$dir/console"
  local n s p l
  eval "$(sed -n '2s/^# nodes=\([0-9]*\) switches=\([0-9]*\) ports=\([0-9]*\) lids=\([0-9]*\).*/n=\1 s=\2 p=\3 l=\4/p' "$1")"
  l=$(((l * 2 / 64 + 2) * 64)); [ "$l" -gt 49088 ] && l=49088
  (cd "$dir" && IBSIM_SOCKNAME=$sim exec ibsim -s -N $((n + 8)) -S $((s + 8)) -P $((p + 64)) -L "$l" "$1" <>"$dir/console" >"$dir/out" 2>"$dir/err") &
  sim_pid=$!; pids+=("$sim_pid")
  until grep -q 'Network simulator ready' "$dir/out" 2>/dev/null && grep -qF "@$sim:ctl" /proc/net/unix; do sleep 0.02; done
}
stop_sim() { kill "$sim_pid" 2>/dev/null || true; wait "$sim_pid" 2>/dev/null || true; rm -rf "$dir"; }
on() { (cd "$dir" && IBSIM_SOCKNAME=$sim SIM_HOST=$1 LD_PRELOAD=$preload exec "${@:2}"); }

measure() { # FILE PATTERN COMMAND...: seconds until FILE holds PATTERN, MADs, MB
  local file=$1 pattern=$2; shift 2
  local start; start=$(now)
  on H0 "$@" >"$dir/manager.out" 2>"$dir/manager.err" &
  local pid=$!; pids+=("$pid")
  until grep -qs "$pattern" "$file"; do
    kill -0 "$pid" 2>/dev/null || { cat "$dir/manager.err" >&2; return 1; }
    sleep 0.005
  done
  local seconds memory mads
  seconds=$(since "$start")
  memory=$(awk '/VmHWM/ { printf "%.1f", $2 / 1024 }' "/proc/$pid/status")
  sleep 0.3
  mads=$(on H1 perfquery "$(on H1 sminfo | sed -n 's/.*sm lid \([0-9]*\) .*/\1/p')" 1 | sed -n 's/^XmtPkts:\.*//p')
  kill "$pid"; wait "$pid" 2>/dev/null || true
  echo "$seconds $mads $memory"
}
median() { sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

echo "| hosts | program | seconds | datagrams | peak MB | of opensm's: time | datagrams | memory | of the simulator's own time |"
echo "|---|---|---|---|---|---|---|---|---|"
for size in "${sizes[@]}"; do
  net=$(net_of "$size")
  : >"$work/rsm"; : >"$work/opensm"; : >"$work/flood"
  times=$repeats; [ "$size" = 11664 ] && times=1
  for _ in $(seq "$times"); do
    start_sim "$net"
    measure "$dir/manager.out" 'fabric is up' "$rsm" run --state-dir "$dir/state" --log-level error >>"$work/rsm"
    on H1 "$flood" "$(tail -1 "$work/rsm" | awk '{ print $2 }')" 64 1 >>"$work/flood"
    stop_sim
    start_sim "$net"
    mkdir "$dir/osm"
    OSM_TMP_DIR=$dir/osm OSM_CACHE_DIR=$dir/osm measure "$dir/osm/log" 'SUBNET UP' opensm -f "$dir/osm/log" >>"$work/opensm"
    stop_sim
  done
  column() { awk -v c="$2" '{ print $c }' "$work/$1" | median; }
  awk -v size="$size" -v rt="$(column rsm 1)" -v rm="$(column rsm 2)" -v rk="$(column rsm 3)" \
    -v ot="$(column opensm 1)" -v om="$(column opensm 2)" -v ok="$(column opensm 3)" -v ft="$(column flood 1)" 'BEGIN {
      printf "| %d | opensm | %.3f | %d | %.1f | 1 | 1 | 1 | |\n", size, ot, om, ok
      printf "| %d | rsm | %.3f | %d | %.1f | %.2f | %.2f | %.2f | %.2f |\n", size, rt, rm, rk, rt / ot, rm / om, rk / ok, rt / ft
    }'
done
