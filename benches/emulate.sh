#!/bin/bash
# emulate.sh [COUNT] [RUNS]: MADs answered per second by `rsm emulate` and by ibsim, to the same client (examples/flood: Gets
# of NodeInfo from the switch next door), alternating, at several numbers in flight. Medians of RUNS.
# Needs: cargo build --release -p cli --bins --examples; cargo build --release -p rsm-preload; and ibsim-utils.
set -eu
count=${1:-200000} runs=${2:-5}
here=$(cd "$(dirname "$0")/.." && pwd)
bin=${CARGO_TARGET_DIR:-$here/target}/release
net=$here/testdata/nets/two-switches.net
work=$(mktemp -d)
export IBSIM_SOCKNAME="bench$$"

cleanup() {
    kill "${ibsim:-}" "${emulator:-}" 2>/dev/null || true
    rm -rf "$work"
}
trap cleanup EXIT

cd "$work"
ibsim -s -n "$net" >ibsim.out 2>&1 &
ibsim=$!
"$bin/rsm" emulate "$net" --dir "$work/emulator" </dev/null >emulate.out &
emulator=$!
sleep 1

on_ibsim() {
    SIM_HOST=H0 LD_PRELOAD=/usr/lib/x86_64-linux-gnu/umad2sim/libumad2sim.so "$bin/examples/flood" "$count" "$1"
}
on_emulator() {
    RSM_EMULATE=$work/emulator RSM_NODE=H0 LD_PRELOAD=$bin/librsm_preload.so "$bin/examples/flood" "$count" "$1"
}
rate() { # median of seconds on standard input, as MADs per second
    sort -n | awk -v count="$count" '{ s[NR] = $1 } END { printf "%d", count / s[int((NR + 1) / 2)] }'
}

printf '%9s %12s %12s %6s\n' in-flight emulate/s ibsim/s ratio
for window in 1 4 16 64 280; do
    : >a; : >b
    for _ in $(seq "$runs"); do
        on_emulator "$window" >>a
        on_ibsim "$window" >>b
    done
    ours=$(rate <a) theirs=$(rate <b)
    printf '%9s %12s %12s %6s\n' "$window" "$ours" "$theirs" "$(awk "BEGIN { printf \"%.2f\", $ours / $theirs }")"
done
