//! A network being laid out: switches, hosts and links by number, before port counts are known.

use mad::types::{Guid, LinkSpeed, LinkWidth, NodeType, PortNum, PortPhysState, PortState};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use routing::fabric::{Fabric, Node, NodeId, PortRef};

use super::{GenerateError, HOST_GUIDS, Names, Options, SWITCH_GUIDS};

/// The most ports that a switch can have.
const MAX_PORTS: u16 = 254;

/// One end of a planned link: switch number and port.
pub(super) type End = (usize, u16);

struct Switch {
    name: String,
    last_port: u16,
}

struct Host {
    name: String,
    at: End,
    second: Option<End>,
}

/// The plan.
#[derive(Default)]
pub(super) struct Plan {
    switches: Vec<Switch>,
    hosts: Vec<Host>,
    links: Vec<(End, End)>,
}

impl Plan {
    /// Adds a switch.
    pub(super) fn switch(&mut self, name: impl Into<String>) -> usize {
        self.switches.push(Switch { name: name.into(), last_port: 0 });
        self.switches.len() - 1
    }

    /// The next port of a switch after all those in use.
    fn next(&mut self, switch: usize) -> End {
        self.switches[switch].last_port += 1;
        (switch, self.switches[switch].last_port)
    }

    /// Joins two switches by their next ports.
    pub(super) fn link(&mut self, a: usize, b: usize) {
        let ends = (self.next(a), self.next(b));
        self.links.push(ends);
    }

    /// Joins two switches by given ports.
    pub(super) fn link_ports(&mut self, a: End, b: End) {
        for (switch, port) in [a, b] {
            self.reserve(switch, port);
        }
        self.links.push((a, b));
    }

    /// Leaves the ports up to `port` to [`Plan::link_ports`].
    pub(super) fn reserve(&mut self, switch: usize, port: u16) {
        let last = &mut self.switches[switch].last_port;
        *last = (*last).max(port);
    }

    /// Hangs a host on the next port of a switch.
    pub(super) fn host(&mut self, switch: usize) {
        let at = self.next(switch);
        self.hosts.push(Host { name: format!("H{}", self.hosts.len()), at, second: None });
    }

    /// Lays the cables.
    pub(super) fn build(mut self, options: &Options) -> Result<Fabric, GenerateError> {
        self.check_shares(options)?;
        let mut rng = Pcg64Mcg::seed_from_u64(options.seed);
        if options.dual_port {
            self.second_ports();
        }
        let rails = if options.dual_rail { self.second_rail() } else { Vec::new() };
        let gone = self.missing_switches(options.missing_switches, &mut rng)?;
        if let Some(switch) = self.switches.iter().find(|s| s.last_port > MAX_PORTS) {
            return Err(GenerateError::TooManyPorts(switch.name.clone()));
        }
        let end_ports = self.switches.len()
            + self.hosts.iter().map(|h| 1 + usize::from(h.second.is_some())).sum::<usize>();
        if end_ports > 0xbfff {
            return Err(GenerateError::TooManyLids(end_ports));
        }
        let mut cabling = Cabling { fabric: Fabric::new(), speed: options.speed, width: options.width };
        let hosts = self.add_hosts(&mut cabling.fabric, options, &rails)?;
        let switches = self.add_switches(&mut cabling.fabric, options, &gone)?;
        self.lay(&mut cabling, &hosts, &switches, options, &mut rng)?;
        Ok(cabling.fabric)
    }

    fn check_shares(&self, options: &Options) -> Result<(), GenerateError> {
        for (what, share) in
            [("missing links", options.missing_links), ("degraded links", options.degraded_links)]
        {
            if !(0.0..=1.0).contains(&share) {
                return Err(GenerateError::Parameter(format!("share of {what} is {share}: expected 0 to 1")));
            }
        }
        if self.switches.is_empty() {
            return Err(GenerateError::Parameter("a network of no switches".into()));
        }
        Ok(())
    }

    /// The leaf that is a switch's partner: leaves are paired in the order of their numbers; a last one without partner is
    /// its own.
    fn partners(&self) -> Vec<usize> {
        let mut leaves: Vec<usize> = self.hosts.iter().map(|h| h.at.0).collect();
        leaves.sort_unstable();
        leaves.dedup();
        let mut partner: Vec<usize> = (0..self.switches.len()).collect();
        for pair in leaves.chunks_exact(2) {
            partner[pair[0]] = pair[1];
            partner[pair[1]] = pair[0];
        }
        partner
    }

    fn second_ports(&mut self) {
        let partner = self.partners();
        for host in 0..self.hosts.len() {
            let second = self.next(partner[self.hosts[host].at.0]);
            self.hosts[host].second = Some(second);
        }
    }

    /// Adds the second adapters; returns for each host the index of the host whose system it belongs to.
    fn second_rail(&mut self) -> Vec<usize> {
        let partner = self.partners();
        let count = self.hosts.len();
        for host in 0..count {
            let at = self.next(partner[self.hosts[host].at.0]);
            self.hosts.push(Host { name: format!("H{host}_1"), at, second: None });
        }
        (0..count).chain(0..count).collect()
    }

    /// Draws the switches that are missing, among those without hosts.
    fn missing_switches(&self, count: usize, rng: &mut Pcg64Mcg) -> Result<Vec<bool>, GenerateError> {
        let mut gone = vec![false; self.switches.len()];
        if count == 0 {
            return Ok(gone);
        }
        let mut has_host = vec![false; self.switches.len()];
        for host in &self.hosts {
            has_host[host.at.0] = true;
        }
        let mut candidates: Vec<usize> = (0..self.switches.len()).filter(|s| !has_host[*s]).collect();
        if count > candidates.len() {
            return Err(GenerateError::Parameter(format!(
                "{count} missing switches: only {} switches have no hosts",
                candidates.len()
            )));
        }
        candidates.shuffle(rng);
        for switch in &candidates[..count] {
            gone[*switch] = true;
        }
        Ok(gone)
    }

    fn add_hosts(
        &self,
        fabric: &mut Fabric,
        options: &Options,
        rails: &[usize],
    ) -> Result<Vec<NodeId>, GenerateError> {
        let ports = if options.dual_port { 2 } else { 1 };
        let guid = |index: usize| Guid(HOST_GUIDS + index as u64 * (u64::from(ports) + 1));
        let add = |(index, host): (usize, &Host)| {
            let mut node =
                Node::new(NodeType::Ca, guid(index), named(&host.name, index, options.names), ports);
            node.system_image_guid = guid(rails.get(index).copied().unwrap_or(index));
            Ok(fabric.add_node(node)?)
        };
        self.hosts.iter().enumerate().map(add).collect()
    }

    fn add_switches(
        &self,
        fabric: &mut Fabric,
        options: &Options,
        gone: &[bool],
    ) -> Result<Vec<Option<NodeId>>, GenerateError> {
        let add = |(index, switch): (usize, &Switch)| {
            if gone[index] {
                return Ok(None);
            }
            let guid = Guid(SWITCH_GUIDS + index as u64);
            let name = named(&switch.name, index, options.names);
            let ports = switch.last_port.clamp(1, MAX_PORTS) as u8;
            Ok(Some(fabric.add_node(Node::new(NodeType::Switch, guid, name, ports))?))
        };
        self.switches.iter().enumerate().map(add).collect()
    }

    fn lay(
        &self,
        cabling: &mut Cabling,
        hosts: &[NodeId],
        switches: &[Option<NodeId>],
        options: &Options,
        rng: &mut Pcg64Mcg,
    ) -> Result<(), GenerateError> {
        let end =
            |(switch, port): End| switches[switch].map(|node| PortRef { node, port: PortNum(port as u8) });
        for (host, node) in self.hosts.iter().zip(hosts) {
            for (number, at) in [(1, Some(host.at)), (2, host.second)] {
                let Some(there) = at.and_then(end) else { continue };
                cabling.connect(PortRef { node: *node, port: PortNum(number) }, there, false)?;
            }
        }
        for (a, b) in &self.links {
            // Both are drawn for every link, so that one option doesn't change what the other picks.
            let (missing, degraded) =
                (rng.random_bool(options.missing_links), rng.random_bool(options.degraded_links));
            if let (Some(a), Some(b), false) = (end(*a), end(*b), missing) {
                cabling.connect(a, b, degraded)?;
            }
        }
        Ok(())
    }
}

/// The fabric while cables are laid.
struct Cabling {
    fabric: Fabric,
    speed: LinkSpeed,
    width: LinkWidth,
}

impl Cabling {
    fn connect(&mut self, a: PortRef, b: PortRef, degraded: bool) -> Result<(), GenerateError> {
        self.fabric.connect(a, b)?;
        for end in [a, b] {
            let Some(port) = self.fabric.node_mut(end.node).port_mut(end.port) else { continue };
            port.state = PortState::Init;
            port.phys_state = PortPhysState::LinkUp;
            port.width = Some(if degraded { LinkWidth::X1 } else { self.width });
            port.speed = Some(if degraded { LinkSpeed::Sdr } else { self.speed });
            port.widths_supported.0 |= self.width.to_wire();
            let fastest = LinkSpeed::ALL.iter().position(|s| *s == self.speed).unwrap_or(0);
            port.speeds_supported.0 = (1_u16 << (fastest + 1)) - 1;
            if self.speed != LinkSpeed::Fdr10 {
                port.speeds_supported.0 &= !(1 << 3);
            }
        }
        Ok(())
    }
}

/// The name of a node in the style asked for.
fn named(plain: &str, index: usize, names: Names) -> String {
    if names == Names::Plain {
        return plain.into();
    }
    match index % 8 {
        0 => format!("{plain} HCA-1"),
        1 => format!("{plain} - spare"),
        2 => format!("{plain} 'quoted' \\n"),
        3 => format!("{plain}#comment [1](x)"),
        4 => format!("{plain:x<64}"),
        5 => format!("  {plain}  "),
        6 => format!("knoten-ü-{plain}"),
        _ => plain.into(),
    }
}
