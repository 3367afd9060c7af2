//! The console's commands on the simulated world.

use std::fmt::Write as _;

use mad::types::{Lid, PortNum};
use mad::wire::Method;

use super::console::{Command, Place};
use crate::device::Counter;
use crate::device::{Device, Misbehaviour, Quirk};
use crate::world::{End, World};

/// More switches than any right way has.
const MAX_HOPS: usize = 64;

/// Carries out a command and gives its output.
pub(super) fn carry_out(world: &mut World, command: &Command) -> Result<String, String> {
    match command {
        Command::Dump(node) => dump(world, node.as_deref()),
        Command::Route { from, to } => route(world, from, to),
        Command::Link(a, b) => link(world, a, b),
        Command::Unlink(place) => unlink(world, place),
        Command::Relink(place) => relink(world, place),
        Command::Clear(place) => clear(world, place),
        Command::Guid(place, guid) => {
            let end = end_port(world, place)?;
            port(world, end).guid = guid.0;
            Ok(String::new())
        }
        Command::Error { place, rate, attribute } => error(world, place, *rate, *attribute),
        Command::PerformanceSet { place, counter, value, grows } => {
            let end = some_port(world, place)?;
            let counter = Counter::named(counter)?;
            let now = world.now();
            let counters = &mut port(world, end).counters;
            if *grows {
                counters.grow(counter, *value as f64, now);
            } else {
                counters.set(counter, *value);
            }
            Ok(String::new())
        }
        Command::BaseLid { place, lid, lmc } => {
            let end = end_port(world, place)?;
            let info = &mut port(world, end).info;
            info.base_lid.set(*lid);
            info.set_lmc(lmc.unwrap_or_else(|| info.lmc()));
            Ok(String::new())
        }
        Command::Description(node, new) => {
            let node = find(world, node)?;
            world.rename(node, new);
            Ok(String::new())
        }
        Command::Virtual(place) => {
            let end = end_port(world, place)?;
            if world.device(end.node).is_switch() {
                return Err(format!("{place} is a switch: adapters have virtual ports"));
            }
            world.let_have_virtual_ports(end);
            Ok(String::new())
        }
        Command::Reset(node) => {
            let node = find(world, node)?;
            world.power_off(node);
            world.power_on(node);
            Ok(String::new())
        }
        Command::Sent => Ok(sent(world)),
    }
}

/// What programs have sent, a line for each kind.
fn sent(world: &World) -> String {
    let mut kinds: Vec<_> = world.stats().sent().collect();
    kinds.sort_unstable();
    let mut text = String::new();
    for ((class, method, attribute), count) in kinds {
        let _ =
            writeln!(text, "class 0x{class:02x} method 0x{method:02x} attribute 0x{attribute:04x}: {count}");
    }
    text
}

fn find(world: &World, name: &str) -> Result<u32, String> {
    world.find_name(name).ok_or_else(|| format!("no node \"{name}\""))
}

/// The port that a place names.
fn some_port(world: &World, place: &Place) -> Result<End, String> {
    let node = find(world, &place.node)?;
    let number = place.port.ok_or_else(|| format!("{place}: expected a port, {place}[1]"))?;
    let count = world.device(node).num_ports();
    if number.0 > count {
        return Err(format!("{place}: the node has ports 1 to {count}"));
    }
    Ok(End { node, port: number })
}

/// The end port that a place names: port 0 of a switch; of an adapter the one that is given, else port 1.
fn end_port(world: &World, place: &Place) -> Result<End, String> {
    let node = find(world, &place.node)?;
    let device = world.device(node);
    let number = place.port.unwrap_or_else(|| PortNum(*device.end_ports().start()));
    if !device.is_switch() && !device.end_ports().contains(&number.0) {
        return Err(format!("{place}: the node has ports 1 to {}", device.num_ports()));
    }
    Ok(End { node, port: device.end_port(number) })
}

fn port(world: &mut World, end: End) -> &mut crate::device::DevicePort {
    &mut world.device_mut(end.node).ports[end.port.index()]
}

fn link(world: &mut World, a: &Place, b: &Place) -> Result<String, String> {
    let ends = [some_port(world, a)?, some_port(world, b)?];
    for (end, place) in ends.iter().zip([a, b]) {
        if world.peer(*end).is_some() {
            return Err(format!("{place} has a cable already"));
        }
    }
    if world.connect(ends[0], ends[1]) {
        Ok(String::new())
    } else {
        Err(format!("{a} and {b} cannot be linked: port 0 has no cable, and a port none to itself"))
    }
}

fn unlink(world: &mut World, place: &Place) -> Result<String, String> {
    if place.port.is_none() {
        let node = find(world, &place.node)?;
        world.unlink_node(node);
        return Ok(String::new());
    }
    let end = some_port(world, place)?;
    world.unlink(end).map(|_| String::new()).ok_or_else(|| format!("{place} has no cable"))
}

fn relink(world: &mut World, place: &Place) -> Result<String, String> {
    if place.port.is_none() {
        let node = find(world, &place.node)?;
        world.relink_node(node);
        return Ok(String::new());
    }
    let end = some_port(world, place)?;
    if world.relink(end) {
        Ok(String::new())
    } else {
        Err(format!("{place} has a cable, never had one, or its other end has another one now"))
    }
}

fn clear(world: &mut World, place: &Place) -> Result<String, String> {
    let node = find(world, &place.node)?;
    let ports: Vec<u8> = match place.port {
        Some(_) => vec![some_port(world, place)?.port.0],
        None => (1..=world.device(node).num_ports()).collect(),
    };
    for number in ports {
        let end = End::new(node, number);
        world.unlink(end);
        let info = &mut port(world, end).info;
        info.base_lid.set(0);
        info.set_lmc(0);
        info.master_sm_lid.set(0);
    }
    Ok(String::new())
}

fn error(world: &mut World, place: &Place, rate: u8, attribute: Option<u16>) -> Result<String, String> {
    let node = find(world, &place.node)?;
    if let Some(attribute) = attribute {
        let quirks = &mut world.device_mut(node).quirks;
        let port = place.port.map(|port| port.0);
        quirks.retain(|quirk| quirk.attribute != Some(attribute) || quirk.in_port != port);
        if rate > 0 {
            quirks.extend([Method::GET, Method::SET].map(|method| {
                let quirk = Quirk::always(Misbehaviour::Silence).on(method, attribute);
                Quirk { in_port: port, percent: rate, ..quirk }
            }));
        }
        return Ok(String::new());
    }
    let loss = f64::from(rate) / 100.0;
    if place.port.is_some() {
        let end = some_port(world, place)?;
        port(world, end).loss = loss;
    } else {
        world.device_mut(node).ports.iter_mut().for_each(|port| port.loss = loss);
    }
    Ok(String::new())
}

fn dump(world: &World, node: Option<&str>) -> Result<String, String> {
    let mut text = String::new();
    match node {
        Some(name) => dump_node(world, find(world, name)?, &mut text),
        None => (0..world.device_count() as u32).for_each(|node| dump_node(world, node, &mut text)),
    }
    Ok(text)
}

/// A node as ibsim's console shows it: its line, then one of each port with its other end.
fn dump_node(world: &World, node: u32, text: &mut String) {
    let device = world.device(node);
    let kind = if device.is_switch() { "Switch" } else { "Ca" };
    let _ = writeln!(text, "{kind} {} \"{}\" nodeguid {}", device.num_ports(), device.name(), device.guid());
    if let Some(tables) = &device.switch {
        let _ = writeln!(
            text,
            "\tlinearcap {} FDBtop {} portchange {}",
            tables.info.linear_fdb_cap,
            tables.info.linear_fdb_top,
            tables.info.port_state_change()
        );
    }
    for (number, port) in device.ports.iter().enumerate() {
        if number == 0 && !device.is_switch() {
            continue;
        }
        let info = &port.info;
        let _ =
            write!(text, "[{number}]\tlid {} lmc {} smlid {}", info.base_lid, info.lmc(), info.master_sm_lid);
        let width = info.link_width().map_or(0, |width| width.lanes());
        let speed = info.link_speed(port.fdr10).map_or("?", |speed| speed.name());
        let _ = write!(text, " {width}x {speed} {:?}", port.state());
        if let Some(phys) = info.port_phys_state() {
            let _ = write!(text, "/{phys:?}");
        }
        if port.loss > 0.0 {
            let _ = write!(text, " loses {:.0}%", port.loss * 100.0);
        }
        if let Some(peer) = world.peer(End::new(node, number as u8)) {
            let _ = write!(text, " \"{}\"[{}]", world.device(peer.node).name(), peer.port);
        }
        text.push('\n');
    }
}

/// Where a route begins or ends: a LID, or a node's first end port.
fn lid_place(world: &World, text: &str) -> Result<(End, Option<Lid>), String> {
    let by_lid = |lid: Lid| {
        let has = |device: &Device, port: u8| device.ports[usize::from(port)].has_lid(lid.get());
        let devices = world.devices().iter().enumerate();
        devices
            .flat_map(|(node, device)| device.end_ports().map(move |port| (node, device, port)))
            .find(|(_, device, port)| has(device, *port))
            .map(|(node, _, port)| End::new(node as u32, port))
    };
    if let Ok(lid) = text.parse::<Lid>() {
        return by_lid(lid).map(|end| (end, Some(lid))).ok_or_else(|| format!("no port has LID {lid}"));
    }
    let end = end_port(world, &Place { node: text.to_owned(), port: None })?;
    Ok((end, world.device(end.node).ports[end.port.index()].info.lid()))
}

fn route(world: &World, from: &str, to: &str) -> Result<String, String> {
    let (from, _) = lid_place(world, from)?;
    let (to, lid) = lid_place(world, to)?;
    let name = |node: u32| world.device(node).name();
    let lid = lid.ok_or_else(|| format!("\"{}\" has no LID", name(to.node)))?;
    let mut text = format!("From \"{}\"[{}] to LID {lid}\n", name(from.node), from.port);
    let mut at = from;
    for _ in 0..MAX_HOPS {
        if at.node == to.node {
            return Ok(text + &format!("To \"{}\"[{}]\n", name(to.node), to.port));
        }
        let exit = match &world.device(at.node).switch {
            Some(tables) => PortNum(tables.exit(lid.get())),
            None => at.port,
        };
        if exit == PortNum::NONE {
            return Err(format!("{text}\"{}\" has no entry for LID {lid}", name(at.node)));
        }
        let out = End { node: at.node, port: exit };
        let next = world.peer(out);
        let next = next.ok_or_else(|| format!("{text}\"{}\"[{exit}] has no cable", name(at.node)))?;
        let _ = writeln!(text, "[{exit}] -> \"{}\"[{}]", name(next.node), next.port);
        at = next;
    }
    Err(format!("{text}more than {MAX_HOPS} hops: a loop"))
}
