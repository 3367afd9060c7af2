#!/bin/bash
# Installs what the tests need from Debian (as root) and runs all tests. Ends with one line "N passed, N failed"; the exit
# code is not 0 when anything failed. `./test.sh ARGUMENT...` hands its arguments to `cargo test`.
#   RSM_NO_INSTALL=1   install nothing
set -euo pipefail
cd "$(dirname "$0")"

packages=(
  opensm infiniband-diags ibutils                        # peers
  ibsim-utils libumad2sim0                               # fabric simulator and its preload library
  tshark                                                 # dissects what we capture
  ibverbs-utils rdma-core                                # ibv_devinfo
  pkg-config libibverbs-dev librdmacm-dev                # the cargo feature `verbs`
  libclang1-14 libclang-common-14-dev
  qemu-system-x86 busybox-static cpio kmod iproute2      # a real kernel
  gcc make                                               # its module; the headers are installed by its build script
  etcd-server                                            # the store that managers share
  openssl                                                # its certificates
  procps
)
if [ -z "${RSM_NO_INSTALL:-}" ] && ! dpkg -s "${packages[@]}" >/dev/null 2>&1; then
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null
fi
export PATH=$PATH:/usr/sbin:/sbin

# Some images leave out /usr/share/doc, where ibsim's examples are.
examples=/usr/share/doc/ibsim-utils/net-examples
if [ ! -d "$examples" ]; then
  folder=${TMPDIR:-/tmp}/rsm-ibsim-examples
  mkdir -p "$folder"
  (cd "$folder" && apt-get download -qq ibsim-utils && dpkg-deb -x ibsim-utils_*.deb .)
  export RSM_IBSIM_EXAMPLES=$folder$examples
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
cargo test --workspace --locked --no-fail-fast "$@" 2>&1 | tee "$log" || status=$?
# The same facts with libibverbs: only what the feature touches. With arguments a part of the tests is meant, not these.
if [ $# -eq 0 ]; then
  cargo test -p mad --locked --no-fail-fast --features verbs --lib --test kernel 2>&1 | tee -a "$log" || status=$?
  cargo test -p cli --locked --no-fail-fast --features verbs --test peers -- devices:: 2>&1 | tee -a "$log" || status=$?
fi
awk '/^test result:/ { passed += $4; failed += $6 } END { print passed + 0 " passed, " failed + 0 " failed" }' "$log"
exit "$status"
