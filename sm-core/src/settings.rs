//! What steers the subnet manager, apart from how a configuration file spells it.

use std::sync::Arc;
use std::time::Duration;

use mad::transactions::TransactionConfig;
use routing::engines::RoutingInput;

use crate::config::{Config, ConfigError, LidTakeover, text};
use crate::keys::KeyPolicy;
use crate::partitions::{self, Partitions};
use crate::plan::balance::LoadFile;
use crate::qos::Qos;

/// All settings of one subnet manager.
#[derive(Clone, Debug, PartialEq)]
pub struct SmSettings {
    /// Priority in the election, 0 to 15.
    pub priority: u8,
    /// SM_Key.
    pub sm_key: u64,
    /// Time between light sweeps; zero: traps only.
    pub sweep_interval: Duration,
    /// Whether traps that announce a change start a sweep.
    pub sweep_on_trap: bool,
    /// Time between two questions of a standby to its master.
    pub polling_interval: Duration,
    /// Unanswered questions after which a standby takes over.
    pub polling_retries: u32,
    /// Whether a new master takes the LID of the master before, where no port has it any more.
    pub lid_takeover: LidTakeover,
    /// Ports in a second that are told to register anew, where there are many; at least 1.
    pub reregister_per_s: u32,
    /// Whether a master stays master although a standby ranks higher.
    pub sticky: bool,
    /// Time between two readings of the load for `adaptive-minhop`; zero: never.
    pub balance_interval: Duration,
    /// Keys of ports.
    pub m_keys: Arc<KeyPolicy>,
    /// What is planned.
    pub plan: PlanSettings,
    /// Windows and time-outs.
    pub transactions: TransactionConfig,
}

/// What the planner needs to know.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanSettings {
    /// Prefix of all GIDs.
    pub subnet_prefix: u64,
    /// Service level by which clients reach the subnet manager.
    pub sm_sl: u8,
    /// Engines in the order in which they are tried.
    pub engines: Vec<String>,
    /// What steers the engines.
    pub steering: RoutingInput,
    /// Whether degraded links are left out of the routes where they are not needed.
    pub avoid_degraded_links: bool,
    /// LMC of channel adapters, routers and enhanced port 0; base port 0 has none (B19).
    pub lmc: u8,
    /// SubnetTimeOut: 4.096 µs · 2^n.
    pub subnet_timeout: u8,
    /// SwitchInfo.LifeTimeValue.
    pub packet_life_time: u8,
    /// HOQLife of links between switches.
    pub hoq_life: u8,
    /// HOQLife of switch ports that face anything else.
    pub leaf_hoq_life: u8,
    /// VLStallCount of links between switches.
    pub vl_stall_count: u8,
    /// VLStallCount of switch ports that face anything else.
    pub leaf_vl_stall_count: u8,
    /// Most OperationalVLs, coded 1 to 5.
    pub max_operational_vls: u8,
    /// LocalPhyErrors threshold.
    pub local_phy_errors: u8,
    /// OverrunErrors threshold.
    pub overrun_errors: u8,
    /// Whether ports that must register anew are told so.
    pub client_reregister: bool,
    /// Who may talk to whom.
    pub partitions: Arc<Partitions>,
    /// Whether switches check the P_Keys of what adapters send and get.
    pub enforce_partitions: bool,
    /// Sharing of links between lanes, and lanes of service levels.
    pub qos: Qos,
    /// Load for `adaptive-minhop`, in place of counters read over the fabric.
    pub load_file: Option<LoadFile>,
}

impl SmSettings {
    /// The settings that a configuration asks for, with the partitions and the lists that steer routing of the files that it
    /// names.
    ///
    /// # Errors
    /// A file can't be read or is wrong. No access is widened then: nothing is used of it (B54).
    pub fn load(config: &Config) -> Result<Self, ConfigError> {
        Self::with_files(config).map_err(|error| config.blame(error))
    }

    fn with_files(config: &Config) -> Result<Self, ConfigError> {
        let mut settings = Self::from(config);
        if let Some(file) = &config.partitions.file {
            let unreadable = |source| ConfigError::Unreadable { file: file.clone(), source };
            let text = text(file).map_err(unreadable)?;
            let partitions = partitions::read(&text).map_err(|error| ConfigError::Invalid {
                file: file.clone(),
                line: error.line,
                column: error.column,
                key: None,
                message: error.message,
            })?;
            settings.plan.partitions = Arc::new(partitions);
        }
        settings.m_keys = Arc::new(config.m_key.policy()?);
        settings.plan.steering = config.routing.steering()?;
        settings.plan.qos = config.qos.wanted()?;
        if let Some(file) = &config.routing.load_file {
            let unreadable = |source| ConfigError::Unreadable { file: file.clone(), source };
            let text = text(file).map_err(unreadable)?;
            settings.plan.load_file = Some(LoadFile { name: file.display().to_string(), text: text.into() });
        }
        Ok(settings)
    }
}

/// Without the files that it names: the default's partitions, no M_Keys, routing as the keys alone say.
impl From<&Config> for SmSettings {
    fn from(config: &Config) -> Self {
        let (sm, ports, t) = (&config.sm, &config.ports, &config.transactions);
        Self {
            priority: sm.priority,
            sm_key: sm.sm_key.0,
            sweep_interval: Duration::from_secs(u64::from(sm.sweep_interval_s)),
            sweep_on_trap: sm.sweep_on_trap,
            polling_interval: Duration::from_millis(u64::from(sm.polling_interval_ms)),
            polling_retries: u32::from(sm.polling_retries),
            lid_takeover: config.failover.lid_takeover,
            reregister_per_s: config.failover.reregister_per_s,
            sticky: sm.sticky,
            balance_interval: Duration::from_secs(u64::from(config.routing.balance_interval_s)),
            m_keys: Arc::default(),
            plan: PlanSettings {
                subnet_prefix: sm.subnet_prefix.0,
                sm_sl: sm.sm_sl,
                engines: config.routing.engines.clone(),
                steering: RoutingInput::default(),
                avoid_degraded_links: config.routing.avoid_degraded_links,
                lmc: config.lids.lmc,
                subnet_timeout: ports.subnet_timeout,
                packet_life_time: ports.packet_life_time,
                hoq_life: ports.hoq_life,
                leaf_hoq_life: ports.leaf_hoq_life,
                vl_stall_count: ports.vl_stall_count,
                leaf_vl_stall_count: ports.leaf_vl_stall_count,
                max_operational_vls: ports.max_operational_vls,
                local_phy_errors: ports.local_phy_errors,
                overrun_errors: ports.overrun_errors,
                client_reregister: ports.client_reregister,
                partitions: Arc::default(),
                enforce_partitions: config.partitions.enforce,
                qos: config.qos.alone(),
                load_file: None,
            },
            transactions: TransactionConfig {
                window: usize::from(t.window),
                per_destination: usize::from(t.per_destination),
                timeout: Duration::from_millis(u64::from(t.timeout_ms)),
                retries: u32::from(t.retries),
                ..TransactionConfig::default()
            },
        }
    }
}

impl Default for SmSettings {
    fn default() -> Self {
        Self::from(&Config::default())
    }
}
