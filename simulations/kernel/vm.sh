#!/bin/bash
# Runs a command on a real Linux kernel with ib_umad, and either ib_uverbs and two Soft-RoCE devices or modules of one's choice;
# neither InfiniBand hardware nor KVM is needed. Debian's own kernel boots under qemu's emulation from an initramfs, in ten to
# thirty seconds.
#
#   simulations/kernel/vm.sh [-f FILE[=PATH]]... [-m MODULE]... [-t SECONDS] -- COMMAND [ARGUMENT]...
#   simulations/kernel/vm.sh -k
#
#   -f FILE[=PATH]  puts a file in the machine, at PATH (default /bin/NAME); the shared libraries of a program come along, and with
#                   libibverbs the driver of Soft-RoCE (package ibverbs-providers)
#   -m MODULE       loads a module in place of Soft-RoCE: a file (NAME.ko) or one of the kernel's own (ib_ipoib), parameters behind
#                   it with blanks between
#   -t SECONDS      how long the machine may run (default 300)
#   -k              runs nothing: fetches the kernel if need be, and prints its directory
#
# The command runs as root in /tmp, with standard error joined to its output. The output is printed and the exit status is
# the command's own; 125 means that the machine failed, and then standard error says how. Inside are:
#
#   rxe0, rxe1      (without -m) RDMA devices over the two ends of a cable (eth-a, eth-b), link layer Ethernet, queue pair 1 only;
#                   GID 1 is fd00::1 and fd00::2, and each device reaches itself
#   /dev/infiniband (without -m) umad0 issm0 uverbs0 for rxe0; umad1 issm1 uverbs1 for rxe1
#   /bin            busybox (with sh), rdma, and ip (name it /bin/ip: the shell has a lesser one of its own)
#
# RSM_VM_ACCEL=kvm has qemu use KVM, which is much faster, where it works. Debian packages: qemu-system-x86 busybox-static cpio kmod iproute2. The kernel's
# package is fetched once, by apt-get download, into RSM_VM_DIR (default ~/.cache/rsm-vm). Example:
#
#   simulations/kernel/vm.sh -f target/debug/rsm -- rsm devices --json
set -euo pipefail

fail() { echo "vm.sh: $*" >&2; exit 125; }

usage="usage: vm.sh [-f FILE[=PATH]]... [-m MODULE]... [-t SECONDS] -- COMMAND..., or vm.sh -k"
seconds=300 files=() modules=() only_kernel=
while [ $# -gt 0 ]; do
  case $1 in
    -f) files+=("${2:?}"); shift 2 ;;
    -m) modules+=("${2:?}"); shift 2 ;;
    -t) seconds=${2:?}; shift 2 ;;
    -k) only_kernel=1; shift ;;
    --) shift; break ;;
    *) fail "unknown option $1; $usage" ;;
  esac
done
[ $# -gt 0 ] || [ -n "$only_kernel" ] || fail "no command; $usage"
PATH=$PATH:/usr/sbin:/sbin
for tool in qemu-system-x86_64:qemu-system-x86 busybox:busybox-static cpio:cpio modprobe:kmod depmod:kmod ip:iproute2 rdma:iproute2; do
  command -v "${tool%:*}" >/dev/null || fail "${tool%:*} is missing; install the package ${tool#*:}"
done

cache=${RSM_VM_DIR:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/rsm-vm}
mkdir -p "$cache"
fetch_kernel() {
  local package
  package=$(apt-cache depends linux-image-amd64 | awk '/Depends:/ {print $2; exit}')
  [ -n "$package" ] || fail "apt knows no package linux-image-amd64; run apt-get update"
  rm -rf "$cache"/kernel.new && mkdir "$cache"/kernel.new
  (cd "$cache"/kernel.new && apt-get download -qq "$package" >&2 && dpkg-deb -x ./*.deb . && rm ./*.deb) \
    || fail "cannot fetch the package $package"
  depmod -b "$cache"/kernel.new "$(ls "$cache"/kernel.new/lib/modules)"
  mv "$cache"/kernel.new "$cache"/kernel
}
# Tests may come here at the same time.
exec 9>"$cache"/lock
flock 9
[ -d "$cache"/kernel ] || fetch_kernel
flock -u 9
exec 9>&-
kernel=$cache/kernel
[ -z "$only_kernel" ] || { echo "$kernel"; exit 0; }
version=$(ls "$kernel"/lib/modules)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
mkdir -p "$root"/{bin,dev,proc,sys,tmp,run,etc,modules}

# put FILE PATH: a file, and the libraries that it needs at the places where its loader looks for them
put() {
  [ -r "$1" ] || fail "cannot read $1"
  mkdir -p "$root/$(dirname "$2")"
  # What debuggers read of a program is most of its size.
  strip -S -o "$root/$2" "$1" 2>/dev/null || cp -L "$1" "$root/$2"
  local library
  { ldd "$1" 2>/dev/null || true; } | grep -o '/[^ ]*' | while read -r library; do
    [ -e "$root$library" ] || { mkdir -p "$root$(dirname "$library")" && cp -L "$library" "$root$library"; }
  done || true
}
put "$(command -v busybox)" bin/busybox
put "$(command -v ip)" bin/ip
put "$(command -v rdma)" bin/rdma
for applet in $(busybox --list); do [ -e "$root/bin/$applet" ] || ln -s busybox "$root/bin/$applet"; done
for file in ${files[@]+"${files[@]}"}; do
  path=${file#*=}
  [ "$path" != "$file" ] || path=bin/$(basename "$file")
  put "${file%%=*}" "$path"
done

# A program with libibverbs needs the driver of Soft-RoCE beside it, which the loader does not name.
if [ -n "$(find "$root" -name 'libibverbs.so.1' -print -quit)" ]; then
  for driver in /etc/libibverbs.d/rxe.driver /usr/lib/*/libibverbs/librxe-rdmav*.so; do
    [ ! -e "$driver" ] || put "$driver" "$driver"
  done
fi

# Modules in the order of their dependencies, one's own last; parameters lie beside them.
roce=
[ ${#modules[@]} -gt 0 ] || { modules=(crc32c_generic crc32_generic veth ib_uverbs rdma_ucm rdma_rxe) roce=1; }
wanted=(ib_umad)
for module in "${modules[@]}"; do
  case ${module%% *} in *.ko) ;; *) wanted+=("${module%% *}") ;; esac
done
number=100
for module in $(modprobe -d "$kernel" -S "$version" -a --show-depends "${wanted[@]}" | awk '/^insmod/ && !seen[$2]++ {print $2}'); do
  cp "$module" "$root/modules/$((number++))-$(basename "$module")"
done
for module in "${modules[@]}"; do
  file=${module%% *} name=$(basename "${module%% *}" .ko)
  case $file in *.ko) cp "$file" "$root/modules/$((number++))-$name.ko" ;; esac
  [ "$file" = "$module" ] || echo "${module#* }" >"$root/modules/$name.parameters"
done

printf '%q ' "$@" >"$root/command"
cat >"$root/init" <<'INIT'
#!/bin/sh
export PATH=/bin HOME=/tmp TMPDIR=/tmp
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
for module in /modules/*.ko; do
  name=${module##*/*-}
  parameters=/modules/${name%.ko}.parameters
  [ -e "$parameters" ] && parameters=$(cat "$parameters") || parameters=
  insmod "$module" $parameters || echo "vm: $module failed"
done
# With its path, or busybox's shell takes its own.
/bin/ip link set lo up
if [ -e /roce ]; then
/bin/ip link add eth-a type veth peer name eth-b
/bin/ip addr add fd00::1/64 dev eth-a nodad
/bin/ip addr add fd00::2/64 dev eth-b nodad
/bin/ip link set eth-a up
/bin/ip link set eth-b up
rdma link add rxe0 type rxe netdev eth-a
rdma link add rxe1 type rxe netdev eth-b
for file in umad0 umad1 issm0 issm1; do
  [ -e /dev/infiniband/$file ] || { echo "vm: /dev/infiniband/$file is missing"; poweroff -f; }
done
fi
cd /tmp
echo "@@ begin"
sh /command </dev/null 2>&1
echo "@@ status $?"
poweroff -f
INIT
chmod +x "$root/init"
[ -z "$roce" ] || touch "$root/roce"
(cd "$root" && find . | cpio -o -H newc --quiet | gzip -1) >"$work/initramfs" || fail "cannot pack the initramfs"

timeout "$seconds" qemu-system-x86_64 -accel "${RSM_VM_ACCEL:-tcg,thread=multi}" -cpu max -smp 2 -m 1024 -nodefaults -nographic -no-reboot -serial stdio \
  -kernel "$kernel/boot/vmlinuz-$version" -initrd "$work/initramfs" \
  -append "console=ttyS0 loglevel=1 panic=-1 mitigations=off" </dev/null 2>&1 | tr -d '\r' >"$work/log" || true

status=$(sed -n 's/^.*@@ status //p' "$work/log" | tail -1)
awk '/@@ status / {exit} inside {print} /@@ begin/ {inside = 1}' "$work/log"
if [ -z "$status" ]; then
  tail -20 "$work/log" >&2
  fail "the machine did not get as far as the command's end within $seconds s"
fi
exit "$status"
