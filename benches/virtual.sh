#!/bin/bash
# virtual.sh: bring-up in virtual time, by one thread with the planner's help: the three-level tree of 36-port switches with
# 11,664 hosts, and one with 48,896 LIDs of the 49,151 that there are. Real time, CPU time and peak memory of the simulation
# and the subnet manager together, and the verifier's word on the tables in the simulated switches.
# Needs: cargo build --release -p simulated-manager --example bring_up.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
bin=${CARGO_TARGET_DIR:-$here/target}/release/examples/bring_up
echo "11,664 hosts"
"$bin" 18,18,36 1,18,18
echo "45,056 hosts"
"$bin" 32,32,44 1,32,32
echo "45,056 hosts, without looking for forwarding loops"
"$bin" --unwatched 32,32,44 1,32,32
