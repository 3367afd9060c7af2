#!/bin/bash
# Captures the datagrams of this folder again: stock infiniband-diags and opensm on ibsim, fabric.net.
# Needs (Debian): opensm infiniband-diags ibsim-utils libumad2sim0 libibumad-dev gcc. Writes NAME.txt, each with the command,
# [request] and [response] as hexadecimal, and [printed], what the tool made of the response.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
sock=mads-$$
preload=/usr/lib/x86_64-linux-gnu/umad2sim/libumad2sim.so
pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true; rm -rf "$work"' EXIT
gcc -O2 -fPIC -shared -o "$work/madlog.so" "$here/madlog.c" -I/usr/include/infiniband -ldl
versions="infiniband-diags $(dpkg-query -W -f '${Version}' infiniband-diags), opensm $(dpkg-query -W -f '${Version}' opensm), ibsim $(dpkg-query -W -f '${Version}' ibsim-utils)"

mkfifo "$work/console"
IBSIM_SOCKNAME=$sock ibsim -s "$here/fabric.net" <>"$work/console" >"$work/ibsim.out" 2>&1 &
pids+=($!)
until grep -qF "@$sock:ctl" /proc/net/unix; do sleep 0.1; done

# on NODE COMMAND...: runs a program on a simulated node (the library puts its sysfs into the working directory).
on() (
  node=$1; shift; cd "$work"
  IBSIM_SOCKNAME=$sock SIM_HOST=$node LD_PRELOAD="$work/madlog.so $preload" exec "$@"
)

mkdir "$work/osm"
(
  cd "$work"
  export OSM_TMP_DIR=$work/osm OSM_CACHE_DIR=$work/osm MADLOG=$work/osm/mads IBSIM_SOCKNAME=$sock SIM_HOST=H1
  LD_PRELOAD="$work/madlog.so $preload" exec opensm -f "$work/osm/log"
) >/dev/null 2>&1 &
pids+=($!)
until on H3 saquery -c >/dev/null 2>&1; do sleep 0.5; done
sleep 2

# hex LINE: 32 bytes a line.
hex() { fold -w 64 <<<"$1"; }
# keep NAME COMMAND...: runs a tool on H3 and keeps its last request and response.
keep() {
  local name=$1; shift
  rm -f "$work/mads"
  MADLOG=$work/mads on H3 "$@" >"$work/printed" 2>/dev/null
  {
    echo "# $* ($versions)"
    echo '[request]';  hex "$(sed -n 's/^send //p' "$work/mads" | tail -1)"
    echo '[response]'; hex "$(sed -n 's/^recv //p' "$work/mads" | tail -1)"
    echo '[printed]';  cat "$work/printed"
  } >"$here/$name.txt"
}
# keep_osm NAME PATTERN TEXT: keeps the last datagram of opensm whose line matches.
keep_osm() {
  local line
  line=$(grep -E "$2" "$work/osm/mads" | tail -1)
  { echo "# $3 ($versions)"; echo "[${line%% *}]"; hex "${line#* }"; } >"$here/$1.txt"
}

keep node_info        smpquery nodeinfo -L 2
keep node_description smpquery nodedesc -L 2
keep port_info_switch smpquery portinfo -L 2 3
keep port_info_host   smpquery -K portinfo -L 1 1
keep port_info_direct smpquery -D portinfo 0,1,3 1
keep switch_info      smpquery switchinfo -L 2
keep pkey_table       smpquery pkeys -L 1 1
keep sl_to_vl         smpquery sl2vl -L 2 1
keep vl_arbitration   smpquery vlarb -L 2 1
keep sm_info          sminfo 1
keep port_counters    perfquery 2 1
keep port_counters_extended perfquery -x 2 1
keep sa_class_port_info saquery -c
keep sa_node_record     saquery NR 2
keep sa_port_info_record saquery PIR 1/1
keep sa_switch_info_record saquery SWIR 2
keep sa_path_record     saquery --slid 1 --dlid 3 PR
keep sa_mc_member_record saquery -g
keep sa_link_record     saquery LR 1
keep sa_sm_info_record  saquery SMIR
keep sa_sl_to_vl_record saquery SL2VL 2/1/1
keep sa_pkey_record     saquery --smkey 1 PKTR 1/1
keep sa_vl_arbitration_record saquery VLAR 2/1/1
keep sa_lft_record      saquery LFTR 2/0

echo 'Unlink "S1"[4]' >"$work/console"
until grep -qE '^send 01(01|81)0107' "$work/osm/mads"; do sleep 0.2; done
sleep 1
keep_osm trap_128      '^recv 01(01|81)0105.{24}0002'      'Trap of S1 to opensm after the link S1[4] was cut'
keep_osm trap_repress  '^send 01(01|81)0107.{24}0002'      "opensm's answer to it"
keep_osm set_lft       '^send 01(01|81)0102.{24}0019'      'Set(LinearForwardingTable) of opensm'
