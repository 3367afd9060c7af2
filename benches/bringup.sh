#!/bin/bash
# Bring-up of a simulated fabric, and the loss of one link, by rsm and by opensm, on the same simulator in the same run.
#
#   benches/bringup.sh [--quick] [-r REPEATS] [36] [648] [2592] [11664]     (default: all; --quick: 36 648)
#
# Prints two Markdown tables of medians of REPEATS (3; 11,664 hosts: 1). Programs take turns; each run gets a fresh ibsim and
# an empty state.
# - Bring-up: seconds from the program's start to the line of its log that says that the fabric is up, datagrams sent, peak
#   memory; rsm's figures over opensm's; and the time over what the simulator itself needs to answer as many Gets to one
#   client (cli/examples/flood.rs) with 64 in flight. `opensm -n 64` is opensm with rsm's window instead of its default 4.
# - One link lost, and back: seconds from the simulator's command to that line, and datagrams sent.
# Datagrams are counted by ibsim, in the port counters of the manager's port, which perfquery reads.
# Debian packages: opensm ibsim-utils libumad2sim0 infiniband-diags python3. RSM_NO_BUILD=1 takes the binaries as they are.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
repeats=3 sizes=()
while [ $# -gt 0 ]; do
  case $1 in
    --quick) sizes+=(36 648) ;;
    -r) repeats=${2:?}; shift ;;
    36 | 648 | 2592 | 11664) sizes+=("$1") ;;
    *) sed -n '2,4s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
  shift
done
[ ${#sizes[@]} -gt 0 ] || sizes=(36 648 2592 11664)
target=${CARGO_TARGET_DIR:-$here/target}
[ -n "${RSM_NO_BUILD:-}" ] || (cd "$here" && cargo build --release --quiet -p cli --bin rsm --example flood)
rsm=$target/release/rsm flood=$target/release/examples/flood
preload=/usr/lib/x86_64-linux-gnu/umad2sim/libumad2sim.so
PATH=$PATH:/usr/sbin:/sbin
export LC_ALL=C TZ=UTC
work=$(mktemp -d)
sim_pid='' manager=''
finish() {
  for p in $sim_pid $manager; do kill "$p" 2>/dev/null || true; done
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
# A cable between a leaf and the switch above it.
link_of() {
  case $1 in
    36) echo '"L3"[8]' ;;
    648) echo '"L3"[25]' ;;
    2592) echo '"L3"[45]' ;;
    11664) echo '"L0_3"[25]' ;;
  esac
}

run=0
start_sim() { # NET: a fresh ibsim, its name in $sim, its folder in $dir
  run=$((run + 1)); sim=rsmbench$$-$run; dir=$work/$run; mkdir "$dir"; mkfifo "$dir/console"
  local n s p l
  eval "$(sed -n '2s/^# nodes=\([0-9]*\) switches=\([0-9]*\) ports=\([0-9]*\) lids=\([0-9]*\).*/n=\1 s=\2 p=\3 l=\4/p' "$1")"
  l=$(((l * 2 / 64 + 2) * 64)); [ "$l" -gt 49088 ] && l=49088
  (cd "$dir" && IBSIM_SOCKNAME=$sim exec ibsim -s -N $((n + 8)) -S $((s + 8)) -P $((p + 64)) -L "$l" "$1" <>"$dir/console" >"$dir/out" 2>"$dir/err") &
  sim_pid=$!
  until grep -q 'Network simulator ready' "$dir/out" 2>/dev/null && grep -qF "@$sim:ctl" /proc/net/unix; do sleep 0.02; done
}
stop_sim() { kill "$sim_pid" 2>/dev/null || true; wait "$sim_pid" 2>/dev/null || true; sim_pid=''; rm -rf "$dir"; }
# NODE PROGRAM...: becomes the program, so call it in a subshell, whose process ID is then the program's.
on() { cd "$dir" && IBSIM_SOCKNAME=$sim SIM_HOST=$1 LD_PRELOAD=$preload exec "${@:2}"; }

# Times of the lines of $dir/log that say that the fabric is up, in seconds since 1970.
ups() {
  awk '/SUBNET UP/ { print $1, $2, $3 "." $4; next } / fabric configured / { print $1 }' "$dir/log" 2>/dev/null \
    | date -f - +%s.%6N 2>/dev/null || true
}
wait_ups() { # COUNT
  local i seen
  for ((i = 0; i < 30000; i++)); do
    seen=$(grep -cs -e 'SUBNET UP' -e ' fabric configured ' "$dir/log" || true)
    [ "${seen:-0}" -lt "$1" ] || return 0
    kill -0 "$manager" 2>/dev/null || break
    sleep 0.02
  done
  cat "$dir/manager.out" "$dir/manager.err" >&2
  return 1
}
start_manager() { # rsm | opensm | opensm64
  local conf=$dir/opensm.conf
  echo 'force_log_flush TRUE' >"$conf"
  mkdir "$dir/osm"
  case $1 in
    rsm) on H0 "$rsm" run --state-dir "$dir/state" --log-level info >"$dir/manager.out" 2>"$dir/log" & ;;
    opensm*)
      local window=(); [ "$1" = opensm64 ] && window=(-n 64)
      OSM_TMP_DIR=$dir/osm OSM_CACHE_DIR=$dir/osm on H0 opensm -F "$conf" -f "$dir/log" ${window[@]+"${window[@]}"} \
        >"$dir/manager.out" 2>"$dir/manager.err" &
      ;;
  esac
  manager=$!
}
datagrams() { on H1 perfquery "$sm_lid" 1 | sed -n 's/^PortXmitPkts:\.*//p'; }

measure() { # rsm | opensm | opensm64, SIZE: appends "seconds datagrams MB down datagrams up datagrams" to $work/NAME
  local start mads memory line before
  start=$(date +%s.%N)
  start_manager "$1"
  wait_ups 1
  memory=$(awk '/VmHWM/ { printf "%.1f", $2 / 1024 }' "/proc/$manager/status")
  sleep 1
  sm_lid=$(on H1 sminfo | sed -n 's/.*sm lid \([0-9]*\) .*/\1/p')
  mads=$(datagrams)
  line="$(ups | awk -v a="$start" 'NR == 1 { printf "%.4f", $1 - a }') $mads $memory"
  for change in Unlink ReLink; do
    before=$(ups | wc -l)
    mads=$(datagrams)
    start=$(date +%s.%N)
    echo "$change $(link_of "$2")" >"$dir/console"
    wait_ups $((before + 1))
    sleep 2   # opensm often sweeps a second time; the last "up" counts
    line+=" $(ups | awk -v a="$start" 'END { printf "%.4f", $1 - a }') $(($(datagrams) - mads))"
  done
  kill "$manager"; wait "$manager" 2>/dev/null || true
  manager=''
  echo "$line" >>"$work/$1"
}

median() { sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
column() { awk -v c="$2" '{ print $c }' "$work/$1" | median; }
row() { # NAME SHOWN SIZE
  local c
  local v=(); for c in 1 2 3 4 5 6 7; do v+=("$(column "$1" $c)"); done
  local o=(); for c in 1 2 3 4 5 6 7; do o+=("$(column opensm $c)"); done
  awk -v h="$3" -v n="$2" -v s="${v[*]}" -v o="${o[*]}" -v f="$(column flood 1)" 'BEGIN {
    split(s, v); split(o, w)
    printf "| %d | %s | %.3f | %d | %.1f | %.2f | %.2f | %.2f | %.1f |\n", h, n, v[1], v[2], v[3], v[1]/w[1], v[2]/w[2], v[3]/w[3], v[1]/f }'
  awk -v h="$3" -v n="$2" -v s="${v[*]}" -v o="${o[*]}" 'BEGIN {
    split(s, v); split(o, w)
    printf "| %d | %s | %.3f | %d | %.3f | %d | %.2f | %.3f |\n", h, n, v[4], v[5], v[6], v[7], v[4]/w[4], v[5]/w[5] }' >>"$work/links"
}

echo "$(date +%F), $(nproc) x $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), load $(cut -d' ' -f1 /proc/loadavg)"
echo
echo "| hosts | program | seconds | datagrams | peak MB | over opensm: time | datagrams | memory | time over the simulator's own |"
echo "|---|---|---|---|---|---|---|---|---|"
for size in "${sizes[@]}"; do
  net=$(net_of "$size")
  rm -f "$work"/{rsm,opensm,opensm64,flood}
  times=$repeats; [ "$size" = 11664 ] && times=1
  for _ in $(seq "$times"); do
    for name in rsm opensm opensm64; do
      start_sim "$net"
      measure "$name" "$size"
      [ "$name" != rsm ] || (on H1 "$flood" "$(tail -1 "$work/rsm" | cut -d' ' -f2)" 64 1 >>"$work/flood")
      stop_sim
    done
  done
  row opensm "opensm" "$size"
  row opensm64 "opensm -n 64" "$size"
  row rsm rsm "$size"
done
echo
echo "| hosts | program | link lost: seconds | datagrams | link back: seconds | datagrams | lost, over opensm: time | datagrams |"
echo "|---|---|---|---|---|---|---|---|"
cat "$work/links"
