#!/bin/bash
# kernel.sh: what hosts notice when their subnet manager is killed: pings between nine IPoIB interfaces of a real kernel, one a
# second each over IPv4 and IPv6, while the manager is restarted, and while a standby takes over; rsm, and opensm under the same
# settings (polled every second, three times). Both run in a virtual machine without KVM, where all is some ten times slower.
# Needs what simulations/kernel/vm.sh and build.sh name, and opensm and infiniband-diags. Takes five minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo test --locked -p cli --test kernel -- --nocapture | grep "pings lost"
