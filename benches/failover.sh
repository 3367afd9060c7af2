#!/bin/bash
# From the SIGKILL of a master to the first query that its standby answers, with nothing changed on the fabric: two rsm with a
# mirrored state, and two opensm, under the same polling, on the same emulated fabric.
#
#   benches/failover.sh [-r RUNS] [-n NET] [-p MILLISECONDS] [-k RETRIES]    (default: 20 runs, tree36, 200 ms, 2 retries)
#
# Prints a Markdown table: seconds to the first answer (median, most), and what the new master sent to set (median of each attribute,
# until 2 s after the answer). The query is `saquery -c` from another host, begun again every 50 ms: it goes to the LID that
# the host's own port says is the subnet manager's, as a kernel's would. Both programs get two seconds to settle before.
# The dead master's port stays, so every end port has to be told the new LID. Debian packages: opensm infiniband-diags.
# RSM_NO_BUILD=1 takes the binaries as they are, RSM_PROFILE=debug those of a debug build.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
runs=20 net=$here/testdata/nets/tree36.net poll=200 retries=2
while getopts r:n:p:k: flag; do
  case $flag in
    r) runs=$OPTARG ;; n) net=$OPTARG ;; p) poll=$OPTARG ;; k) retries=$OPTARG ;;
    *) sed -n '2,5s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
done
profile=${RSM_PROFILE:-release}
bin=${CARGO_TARGET_DIR:-$here/target}/$profile
[ -n "${RSM_NO_BUILD:-}" ] || (cd "$here" && cargo build --release --quiet -p cli --bin rsm && cargo build --release --quiet -p rsm-preload)
rsm=$bin/rsm preload=$bin/librsm_preload.so
[ -e "$preload" ] || preload=$(ls -t "$bin"/deps/librsm_preload.so | head -1)
PATH=$PATH:/usr/sbin:/sbin
export LC_ALL=C
work=$(mktemp -d)
pids=()
finish() {
  for p in "${pids[@]:-}"; do [ -z "$p" ] || kill -KILL "$p" 2>/dev/null || true; done
  rm -rf "$work"
}
trap finish EXIT

hosts=$(sed -n 's/^Hca.*"\(.*\)"$/\1/p' "$net")
last=$(tail -1 <<<"$hosts") asker=$(sed -n 2p <<<"$hosts")

# NODE PROGRAM...: becomes the program; call it in a subshell.
on() { LD_PRELOAD=$preload RSM_EMULATE=$dir RSM_NODE=$1 exec "${@:2}"; }
until_said() { # FILE TEXT
  local i
  for ((i = 0; i < 3000; i++)); do grep -qs -e "$2" "$1" && return 0; sleep 0.02; done
  echo "not said in $1: $2" >&2; tail -5 "$1" >&2; return 1
}

start() { # rsm | opensm, NODE, PRIORITY: in the background, its number in $started
  local at=$dir/$2
  mkdir -p "$at"
  case $1 in
    rsm)
      (umask 077; echo "a secret for this bench" >"$at/secret")
      printf '[sm]\npriority = %d\npolling_interval_ms = %d\npolling_retries = %d\n[failover]\nsecret_file = "%s"\n[state]\ndir = "%s"\n' \
        "$3" "$poll" "$retries" "$at/secret" "$at/state" >"$at/rsm.toml"
      (on "$2" "$rsm" run --config "$at/rsm.toml" >"$at/out" 2>"$at/log") & ;;
    opensm)
      printf 'force_log_flush TRUE\nsminfo_polling_timeout %d\npolling_retry_number %d\n' "$poll" "$retries" >"$at/conf"
      (export OSM_TMP_DIR=$at OSM_CACHE_DIR=$at; on "$2" opensm -p "$3" -F "$at/conf" -f "$at/log" >"$at/out" 2>&1) & ;;
  esac
  started=$!
  pids+=("$started")
}

# Sets of subnet management that programs have sent so far: lines "ATTRIBUTE COUNT".
sets() {
  "$rsm" emulate --send Sent --dir "$dir" | sed -n 's/.*0x\(81\|01\) .*0x02 .*0x\([0-9a-f]*\): \([0-9]*\)$/\2 \3/p' \
    | awk '{ n[$1] += $2 } END { for (a in n) print a, n[a] }'
}

one_run() { # rsm | opensm: appends the seconds to $work/NAME.seconds, Sets to $work/NAME.sets
  dir=$work/emulator$RANDOM$RANDOM
  mkdir "$dir"
  RSM_PRELOAD=$preload "$rsm" emulate "$net" --dir "$dir" <"$work/never" >/dev/null &
  local emulator=$! master standby before
  pids+=("$emulator")
  until [ -S "$dir/socket" ]; do sleep 0.02; done
  start "$1" H0 5; master=$started
  if [ "$1" = rsm ]; then until_said "$dir/H0/out" 'fabric is up'; else until_said "$dir/H0/log" 'SUBNET UP'; fi
  start "$1" "$last" 3; standby=$started
  if [ "$1" = rsm ]; then until_said "$dir/$last/log" 'copy of the master.s state is complete'; else until_said "$dir/$last/log" 'Entering STANDBY'; fi
  sleep 2
  until (on "$asker" saquery -t 500 -c) >/dev/null 2>&1; do sleep 0.1; done
  sets | sort >"$work/before"
  local began ended
  began=$(date +%s.%N)
  kill -KILL "$master"
  until (on "$asker" saquery -t 50 -c) >/dev/null 2>&1; do
    kill -0 "$standby" 2>/dev/null || { echo "the standby ended by itself:" >&2; tail -n 3 "$dir/$last/log" >&2; return 1; }
  done
  ended=$(date +%s.%N)
  awk -v a="$began" -v b="$ended" 'BEGIN { printf "%.3f\n", b - a }' >>"$work/$1.seconds"
  sleep 2
  sets | sort | awk 'NR == FNR { was[$1] = $2; next } { print $1, $2 - was[$1] }' "$work/before" - >>"$work/$1.sets"
  kill -KILL "$standby" "$emulator" 2>/dev/null || true
  { wait "$standby" "$emulator" "$master"; } 2>/dev/null || true
  pids=()
  rm -rf "$dir"
}

mkfifo "$work/never"; exec 9<>"$work/never"
for ((i = 1; i <= runs; i++)); do
  for pair in rsm opensm; do
    one_run $pair || { echo "run $i of $pair is repeated" >&2; one_run $pair; }
  done
done
name_of() { case $1 in 0012) echo SwitchInfo ;; 0015) echo PortInfo ;; 0016) echo P_KeyTable ;; 0017) echo SLtoVL ;; 0018) echo VLArbitration ;; 0019) echo LFT ;; 001b) echo MFT ;; 0014) echo GUIDInfo ;; *) echo "0x$1" ;; esac; }
echo "$(date +%F), $(nproc) x $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), load $(cut -d' ' -f1 /proc/loadavg), $profile build"
echo "$(basename "$net"), $runs runs, polling every $poll ms, $retries retries"
echo
echo "| pair | median s | most s | Sets by the new master |"
echo "|---|---|---|---|"
for pair in rsm opensm; do
  seconds=$(sort -g "$work/$pair.seconds" | awk '{ v[NR] = $1 } END { printf "%.2f | %.2f", v[int((NR + 1) / 2)], v[NR] }')
  text=''
  for attribute in $(awk '$2 > 0 { print $1 }' "$work/$pair.sets" | sort -u); do
    count=$(awk -v a="$attribute" '$1 == a { print $2 }' "$work/$pair.sets" | sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }')
    text+="${text:+, }$count $(name_of "$attribute")"
  done
  echo "| $pair | $seconds | ${text:-none} |"
done
