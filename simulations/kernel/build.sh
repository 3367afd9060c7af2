#!/bin/bash
# Builds the kernel module vib for the kernel that vm.sh boots, and prints where it is. What has been built is kept in RSM_VM_DIR
# (default ~/.cache/rsm-vm) until a source changes.
# Debian packages: gcc make, and the kernel's headers, which are installed when they are missing and this runs as root.
set -euo pipefail
cd "$(dirname "$0")"

fail() { echo "build.sh: $*" >&2; exit 1; }

for tool in gcc make; do
  command -v "$tool" >/dev/null || fail "$tool is missing; install the package $tool"
done
kernel=$(./vm.sh -k)
version=$(ls "$kernel"/lib/modules)
cache=$(dirname "$kernel")
headers=/usr/src/linux-headers-$version

# Tests may come here at the same time.
exec 9>"$cache"/lock
flock 9
if [ ! -e "$headers/Makefile" ]; then
  [ "$(id -u)" = 0 ] || fail "the headers of kernel $version are missing; install linux-headers-$version"
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "linux-headers-$version" >&2 \
    || fail "cannot install linux-headers-$version; if apt has only a newer version, remove $kernel"
fi
build=$cache/vib-$version
mkdir -p "$build"
# Times stay, so that make sees what has changed.
cp -pu Kbuild ./*.c ./*.h "$build"
make -s -C "$headers" M="$build" modules >"$build/log" 2>&1 || { cat "$build/log" >&2; fail "the module does not build"; }
echo "$build/vib.ko"
