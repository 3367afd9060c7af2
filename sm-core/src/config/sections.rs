//! The table of sections and keys. A key's documentation here is also its comment in `rsm config show`.

use std::path::PathBuf;

use mad::types::{Gid, Guid};

use super::SecretKey;
use super::setting::{
    Acknowledge, Allowed, Hex64, LidTakeover, LogFormat, LogLevel, Setting, StateSync, Urls,
};
use crate::qos::{VlMap, VlWeights};

/// A value that is not allowed, and where it stood.
pub(super) struct Refused {
    pub(super) span: std::ops::Range<usize>,
    pub(super) key: &'static str,
    pub(super) given: String,
    pub(super) allowed: Allowed,
}

/// A key for those that print or explain it.
pub(super) struct Key {
    pub(super) section: &'static str,
    pub(super) name: &'static str,
    pub(super) doc: &'static [&'static str],
    pub(super) allowed: Allowed,
}

/// A section for those that print it.
pub(super) struct Section {
    pub(super) name: &'static str,
    pub(super) doc: &'static [&'static str],
}

macro_rules! sections {
    ($(
        $(#[doc = $section_doc:literal])*
        $section:ident: $name:ident {
            $( $(#[doc = $doc:literal])* $key:ident: $ty:ty = $default:expr, $allowed:expr; )*
        }
    )*) => {
        /// The checked configuration.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct Config {
            $( $(#[doc = $section_doc])* pub $section: $name, )*
        }

        $(
            $(#[doc = $section_doc])*
            #[derive(Clone, Debug, PartialEq, Eq)]
            pub struct $name {
                $( $(#[doc = $doc])* pub $key: $ty, )*
            }

            impl Default for $name {
                fn default() -> Self {
                    Self { $( $key: $default, )* }
                }
            }
        )*

        /// The file as serde reads it, each value with its place.
        pub(super) mod raw {
            use super::*;
            use serde::Deserialize;
            use toml::Spanned;

            #[derive(Default, Deserialize)]
            #[serde(default, deny_unknown_fields)]
            pub(in super::super) struct Root {
                $( pub(super) $section: $name, )*
            }

            $(
                #[derive(Default, Deserialize)]
                #[serde(default, deny_unknown_fields)]
                pub(in super::super) struct $name {
                    $( pub(super) $key: Option<Spanned<<$ty as Setting>::Raw>>, )*
                }
            )*
        }

        pub(super) const SECTIONS: &[Section] = &[
            $( Section { name: stringify!($section), doc: &[$($section_doc),*] }, )*
        ];

        pub(super) const KEYS: &[Key] = &[
            $( $( Key {
                section: stringify!($section),
                name: stringify!($key),
                doc: &[$($doc),*],
                allowed: $allowed,
            }, )* )*
        ];

        impl Config {
            /// Raw to checked; the first value that is not allowed ends it.
            pub(super) fn check(raw: raw::Root) -> Result<Self, Refused> {
                let mut config = Self::default();
                $( $(
                    if let Some(given) = raw.$section.$key {
                        let allowed = $allowed;
                        let read: Option<$ty> = Setting::read(given.get_ref(), allowed);
                        config.$section.$key = read.ok_or_else(|| Refused {
                            span: given.span(),
                            key: concat!(stringify!($section), ".", stringify!($key)),
                            given: <$ty as Setting>::show(given.get_ref()),
                            allowed,
                        })?;
                    }
                )* )*
                Ok(config)
            }

            /// The values in the order of [`KEYS`]; `None` for one that is not set.
            pub(super) fn values(&self) -> Vec<Option<toml::Value>> {
                vec![ $( $( self.$section.$key.write(), )* )* ]
            }
        }
    };
}

sections! {
    /// Which port of this host the subnet manager takes. With none of these set: the first InfiniBand port that has a
    /// link; `rsm devices` lists them.
    device: DeviceConfig {
        /// Device name as in /sys/class/infiniband.
        name: Option<String> = None, Allowed::Text;
        /// Port of the device.
        port: Option<u8> = None, Allowed::Integer(1, 254);
        /// Port GUID; instead of name and port.
        guid: Option<Guid> = None, Allowed::Guid;
    }

    /// The subnet manager among others, and how often it looks.
    sm: SmConfig {
        /// Priority in the election of the master: the highest wins, then the lowest port GUID.
        priority: u8 = 0, Allowed::Integer(0, 15);
        /// Whether a master stays master although a manager of higher priority (or of equal one and lower GUID) stands by.
        sticky: bool = false, Allowed::Boolean;
        /// SM_Key: subnet managers that hold another one are not trusted.
        sm_key: Hex64 = Hex64(1), Allowed::Hex;
        /// Prefix of all GIDs.
        subnet_prefix: Hex64 = Hex64(Gid::DEFAULT_PREFIX), Allowed::Hex;
        /// Seconds between light sweeps, which ask each switch whether a port changed; 0: only traps start sweeps.
        sweep_interval_s: u32 = 10, Allowed::Integer(0, 86_400);
        /// Whether a trap that announces a change starts a sweep.
        sweep_on_trap: bool = true, Allowed::Boolean;
        /// Milliseconds between two questions of a standby to its master.
        polling_interval_ms: u32 = 1000, Allowed::Integer(100, 600_000);
        /// Unanswered questions after which a standby takes over.
        polling_retries: u8 = 4, Allowed::Integer(1, 100);
        /// Service level by which clients reach this subnet manager.
        sm_sl: u8 = 0, Allowed::Integer(0, 15);
    }

    /// What a new master changes on the fabric.
    failover: FailoverConfig {
        /// Whether its port takes the LID of the master before, where no port has that any more: then no host has to be
        /// told anything. Else every port is told the new LID, and its clients to register anew.
        lid_takeover: LidTakeover = LidTakeover::WhenGone, Allowed::Word(LidTakeover::WORDS);
        /// Ports in a second that are told so where there are many; each asks for its groups and paths again.
        reregister_per_s: u32 = 2000, Allowed::Integer(1, 100_000);
        /// File with a secret of 16 bytes or more, the same on all managers and readable by its owner only: standbys with
        /// it hold a copy of the master's LIDs and registrations. Not set: no state goes over the fabric.
        secret_file: Option<PathBuf> = None, Allowed::Text;
        /// When the master acknowledges a registration. mirrored: when the standbys that are level have it too (half a
        /// millisecond), or one has not answered for half a second; a standby that can't be sure to have all tells every port to
        /// register anew. local: when the master has written it; one acknowledged right before its node is lost may be lost.
        acknowledge: Acknowledge = Acknowledge::Mirrored, Allowed::Word(Acknowledge::WORDS);
    }

    /// Unicast routes.
    routing: RoutingConfig {
        /// Engines in the order in which they are tried; the first that takes the fabric and passes the check routes it.
        /// When none does, minhop; with no_fallback at the end, nothing.
        engines: Vec<String> = vec!["minhop".to_owned()], Allowed::Engines;
        /// Node GUIDs of root switches, for engines that need them and are not to find them.
        root_guids: Vec<Guid> = Vec::new(), Allowed::Guids;
        /// File of more of them, one a line, as opensm's root_guid_file.
        root_guid_file: Option<PathBuf> = None, Allowed::Text;
        /// File of port GUIDs of compute nodes, as opensm's cn_guid_file; not set: all hosts that are no I/O nodes.
        compute_guid_file: Option<PathBuf> = None, Allowed::Text;
        /// File of port GUIDs of I/O nodes, which are spread over the links by themselves, as opensm's io_guid_file.
        io_guid_file: Option<PathBuf> = None, Allowed::Text;
        /// File of ids that decide between switches of one rank (updn), as opensm's ids_guid_file.
        ids_file: Option<PathBuf> = None, Allowed::Text;
        /// File of weights of switch ports (minhop, dor), as opensm's hop_weights_file.
        hop_weights_file: Option<PathBuf> = None, Allowed::Text;
        /// File of port orders (dor), as opensm's port_search_ordering_file.
        port_order_file: Option<PathBuf> = None, Allowed::Text;
        /// Seed by which LIDs are dealt to equal paths by chance; 0: evenly.
        scatter: u32 = 0, Allowed::Integer(0, 4_294_967_295);
        /// Seconds between two readings of the load of links, by which adaptive-minhop moves routes; 0: never.
        balance_interval_s: u32 = 0, Allowed::Integer(0, 86_400);
        /// File of flows or port counters that adaptive-minhop goes by in place of counters read over the fabric, as
        /// `rsm route --load` takes it; read at the start and at SIGHUP.
        load_file: Option<PathBuf> = None, Allowed::Text;
        /// Leave links between switches that run below what both ends can out of the routes, unless they are needed.
        avoid_degraded_links: bool = false, Allowed::Boolean;
        /// The torus as it is meant to be (torus-2qos), as opensm's torus-2QoS.conf; not set: found from the wiring.
        torus_file: Option<PathBuf> = None, Allowed::Text;
        /// The most virtual lanes that engines use; 0: all that the links have.
        max_vls: u8 = 0, Allowed::Integer(0, 15);
        /// The same for nue alone, where that is to be less, as opensm's nue_max_num_vls.
        nue_max_vls: u8 = 0, Allowed::Integer(0, 15);
    }

    /// Sharing of links between virtual lanes, and the lane of each service level. For each value by itself: the one of a
    /// kind of ports comes before the general one, and a key here before the same in opensm's file. Engines that need several
    /// lanes set them up in any case, and keep the lanes of service levels to themselves.
    qos: QosConfig {
        /// Whether ports are set up also where the engine needs one lane only, as opensm's qos.
        enabled: bool = false, Allowed::Boolean;
        /// opensm's options file, of which the keys that begin with qos count.
        opensm_file: Option<PathBuf> = None, Allowed::Text;
        /// The most data VLs of all ports.
        max_vls: Option<u8> = None, Allowed::Integer(1, 15);
        /// VLHighLimit of all ports: high priority before low has a turn, in 4 KiB; 255: without end.
        high_limit: Option<u8> = None, Allowed::Integer(0, 255);
        /// High-priority table of all ports: VL:WEIGHT with commas between, weights in 64 bytes.
        vlarb_high: Option<VlWeights> = None, Allowed::Weights;
        /// Low-priority table of all ports.
        vlarb_low: Option<VlWeights> = None, Allowed::Weights;
        /// Lane of each of the 16 service levels, of all ports.
        sl2vl: Option<VlMap> = None, Allowed::Lanes;
        /// The most data VLs of channel adapters; not set: as max_vls.
        ca_max_vls: Option<u8> = None, Allowed::Integer(1, 15);
        /// VLHighLimit of channel adapters: high priority before low has a turn, in 4 KiB; 255: without end.
        ca_high_limit: Option<u8> = None, Allowed::Integer(0, 255);
        /// High-priority table of channel adapters: VL:WEIGHT with commas between, weights in 64 bytes.
        ca_vlarb_high: Option<VlWeights> = None, Allowed::Weights;
        /// Low-priority table of channel adapters.
        ca_vlarb_low: Option<VlWeights> = None, Allowed::Weights;
        /// Lane of each of the 16 service levels, of channel adapters.
        ca_sl2vl: Option<VlMap> = None, Allowed::Lanes;
        /// The most data VLs of routers; not set: as max_vls.
        rtr_max_vls: Option<u8> = None, Allowed::Integer(1, 15);
        /// VLHighLimit of routers: high priority before low has a turn, in 4 KiB; 255: without end.
        rtr_high_limit: Option<u8> = None, Allowed::Integer(0, 255);
        /// High-priority table of routers: VL:WEIGHT with commas between, weights in 64 bytes.
        rtr_vlarb_high: Option<VlWeights> = None, Allowed::Weights;
        /// Low-priority table of routers.
        rtr_vlarb_low: Option<VlWeights> = None, Allowed::Weights;
        /// Lane of each of the 16 service levels, of routers.
        rtr_sl2vl: Option<VlMap> = None, Allowed::Lanes;
        /// The most data VLs of enhanced port 0 of switches; not set: as max_vls.
        sw0_max_vls: Option<u8> = None, Allowed::Integer(1, 15);
        /// VLHighLimit of enhanced port 0 of switches: high priority before low has a turn, in 4 KiB; 255: without end.
        sw0_high_limit: Option<u8> = None, Allowed::Integer(0, 255);
        /// High-priority table of enhanced port 0 of switches: VL:WEIGHT with commas between, weights in 64 bytes.
        sw0_vlarb_high: Option<VlWeights> = None, Allowed::Weights;
        /// Low-priority table of enhanced port 0 of switches.
        sw0_vlarb_low: Option<VlWeights> = None, Allowed::Weights;
        /// Lane of each of the 16 service levels, of enhanced port 0 of switches.
        sw0_sl2vl: Option<VlMap> = None, Allowed::Lanes;
        /// The most data VLs of the other ports of switches; not set: as max_vls.
        swe_max_vls: Option<u8> = None, Allowed::Integer(1, 15);
        /// VLHighLimit of the other ports of switches: high priority before low has a turn, in 4 KiB; 255: without end.
        swe_high_limit: Option<u8> = None, Allowed::Integer(0, 255);
        /// High-priority table of the other ports of switches: VL:WEIGHT with commas between, weights in 64 bytes.
        swe_vlarb_high: Option<VlWeights> = None, Allowed::Weights;
        /// Low-priority table of the other ports of switches.
        swe_vlarb_low: Option<VlWeights> = None, Allowed::Weights;
        /// Lane of each of the 16 service levels, of the other ports of switches.
        swe_sl2vl: Option<VlMap> = None, Allowed::Lanes;
    }

    /// LIDs.
    lids: LidsConfig {
        /// Each end port gets 2^lmc LIDs.
        lmc: u8 = 0, Allowed::Integer(0, 7);
        /// Give up all remembered and found LIDs once, at the first sweep.
        reassign: bool = false, Allowed::Boolean;
    }

    /// What is written to ports and switches.
    ports: PortsConfig {
        /// SubnetTimeOut, and the packet lifetime that path records state: 4.096 us * 2^n.
        subnet_timeout: u8 = 18, Allowed::Integer(0, 31);
        /// SwitchInfo LifeTimeValue: a packet older than 4.096 us * 2^n is dropped; 20 and above: never.
        packet_life_time: u8 = 18, Allowed::Integer(0, 31);
        /// HOQLife of links between switches: 4.096 us * 2^n at the head of a queue; 20 and above: for ever.
        hoq_life: u8 = 18, Allowed::Integer(0, 31);
        /// HOQLife of switch ports that face a host.
        leaf_hoq_life: u8 = 16, Allowed::Integer(0, 31);
        /// VLStallCount of links between switches.
        vl_stall_count: u8 = 7, Allowed::Integer(0, 7);
        /// VLStallCount of switch ports that face a host.
        leaf_vl_stall_count: u8 = 7, Allowed::Integer(0, 7);
        /// Most OperationalVLs as the specification codes them: 1 VL0, 2 VL0-1, 3 VL0-3, 4 VL0-7, 5 VL0-14.
        max_operational_vls: u8 = 5, Allowed::Integer(1, 5);
        /// LocalPhyErrors: symbol errors above which a port sends trap 129.
        local_phy_errors: u8 = 8, Allowed::Integer(0, 15);
        /// OverrunErrors: consecutive buffer overruns above which a port sends trap 130.
        overrun_errors: u8 = 8, Allowed::Integer(0, 15);
        /// Whether ports that must register anew are told so.
        client_reregister: bool = true, Allowed::Boolean;
    }

    /// Keys that guard ports: who does not know a port's M_Key can't set anything there. With none of key, secret_file and
    /// file no port gets one, and one that is known is taken away. docs/keys.md.
    m_key: MKeyConfig {
        /// One key for all ports. The configuration file may be read by its owner only then.
        key: Option<SecretKey> = None, Allowed::Key;
        /// File with a secret of 16 bytes or more, readable by its owner only, the same on all managers: each port gets a
        /// key of its own that is made of it.
        secret_file: Option<PathBuf> = None, Allowed::Text;
        /// File of port GUIDs and keys, one port a line, readable by its owner only, as opensm's guid2mkey; 0 is no key. The
        /// others get what key or secret_file says.
        file: Option<PathBuf> = None, Allowed::Text;
        /// File of keys that ports may hold from before, one a line, readable by its owner only: tried in order with ports
        /// that hide an unknown key.
        before_file: Option<PathBuf> = None, Allowed::Text;
        /// M_KeyProtectBits: 0 everybody may read all, the key too; 1 all but the key; 2 and 3 nothing without the key.
        protect: u8 = 1, Allowed::Integer(0, 3);
        /// M_KeyLeasePeriod: seconds after somebody tried a wrong key in which the manager must be heard of, else the port
        /// opens; each port is asked thrice in that time. 0: it never opens by itself.
        lease_s: u16 = 0, Allowed::Integer(0, 65_535);
    }

    /// Management datagrams on the wire.
    transactions: TransactionsConfig {
        /// Requests in flight at once.
        window: u16 = 128, Allowed::Integer(1, 256);
        /// Of these, to one node.
        per_destination: u16 = 8, Allowed::Integer(1, 256);
        /// Milliseconds until a request is sent again; grows with each try.
        timeout_ms: u32 = 200, Allowed::Integer(1, 60_000);
        /// How often it is sent again.
        retries: u8 = 3, Allowed::Integer(0, 20);
    }

    /// Who may talk to whom.
    partitions: PartitionsConfig {
        /// File in the format of opensm's partitions.conf; not set: everybody is a full member of the default partition.
        file: Option<PathBuf> = None, Allowed::Text;
        /// Whether switches check the P_Keys of what adapters send and get.
        enforce: bool = true, Allowed::Boolean;
    }

    /// Subnet administration.
    sa: SaConfig {
        /// Threads that compute long tables, so that these keep nobody waiting.
        workers: u8 = 2, Allowed::Integer(1, 64);
        /// Requests that may wait; more are answered with BUSY.
        queue: u32 = 4096, Allowed::Integer(16, 1_000_000);
    }

    /// What survives a restart.
    state: StateConfig {
        /// Directory of the state files; made when it is missing.
        dir: PathBuf = PathBuf::from("/var/lib/rsm"), Allowed::Text;
        /// When a registration is safe from a power cut; from the end of the program it is before it is acknowledged. grouped:
        /// within 0.1 s, many together, so that a job start doesn't wait for the disk; each: before it is acknowledged.
        sync: StateSync = StateSync::Grouped, Allowed::Word(StateSync::WORDS);
    }

    /// An etcd cluster that holds the state besides, one copy for all managers; docs/failover.md. Without it nothing is
    /// missing: the state directory and failover.secret_file need nothing but the fabric.
    etcd: EtcdConfig {
        /// URLs of its members; none: no etcd is used.
        endpoints: Urls = Urls::default(), Allowed::Urls;
        /// What all keys begin with; another one for each fabric.
        prefix: String = "/rsm".to_owned(), Allowed::Text;
        /// User, where it asks for one.
        user: Option<String> = None, Allowed::Text;
        /// File with the user's password, readable by its owner only.
        password_file: Option<PathBuf> = None, Allowed::Text;
        /// File of certificates (PEM) of those who sign its members'; not set: the well-known ones.
        ca_file: Option<PathBuf> = None, Allowed::Text;
        /// Seconds for which a master that is not heard of keeps others from writing.
        lease_s: u32 = 5, Allowed::Integer(2, 3600);
        /// Milliseconds in which a member must answer.
        timeout_ms: u32 = 1000, Allowed::Integer(10, 60_000);
    }

    /// Files for other programs. A reader never sees half of one. What stands here is taken up at the start.
    files: FilesConfig {
        /// Metrics in Prometheus' text form; in the directory of node_exporter's textfile collector, with a name that ends in
        /// .prom. Not set: not written.
        metrics: Option<PathBuf> = None, Allowed::Text;
        /// Seconds from one writing of the metrics to the next.
        metrics_interval_s: u32 = 15, Allowed::Integer(1, 3600);
        /// The topology.conf of Slurm's topology/tree, written when the fabric changes; not set: not written.
        slurm_topology: Option<PathBuf> = None, Allowed::Text;
    }

    /// The log.
    log: LogConfig {
        /// How much is logged.
        level: LogLevel = LogLevel::Info, Allowed::Word(LogLevel::WORDS);
        /// The form of its lines.
        format: LogFormat = LogFormat::Text, Allowed::Word(LogFormat::WORDS);
        /// File to append to, opened anew at SIGUSR1; not set: standard error.
        file: Option<PathBuf> = None, Allowed::Text;
    }
}
