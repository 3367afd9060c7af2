//! `rsm generate`: a network from a few parameters, as a file that `rsm` and ibsim read. The same command writes the same
//! bytes on every machine.

use anyhow::Context;
use mad::types::PortNum;
use routing::fabric::{Fabric, PortRef};
use routing::formats::{ibnetdiscover, ibsim, json};
use simulations::generate::{GenerateError, Names, Options, Topology, assign_lids, generate};

use crate::args::{FileFormat, Generate, Kind, Variation};
use crate::failure::{Failure, Outcome, complain};
use crate::out;

/// What stands in place of the date, so that two runs write the same.
const NO_DATE: &str = "Thu Jan  1 00:00:00 1970";

pub(super) fn run(args: &Generate) -> Outcome {
    let refused = |error: GenerateError| Failure::Usage(error.to_string());
    let mut fabric = generate(&topology(&args.kind), &options(&args.variation)).map_err(refused)?;
    if args.variation.lids {
        assign_lids(&mut fabric).map_err(refused)?;
    }
    let text = render(&fabric, args.format);
    match &args.output {
        Some(path) => Ok(std::fs::write(path, text).with_context(|| path.display().to_string())?),
        None => out::write(&text),
    }
}

fn topology(kind: &Kind) -> Topology {
    match kind {
        Kind::Xgft { m, w, p } => Topology::Xgft { m: m.0.clone(), w: w.0.clone(), p: p.0.clone() },
        Kind::FullTree { radix } => Topology::full_tree(*radix),
        Kind::Torus { sizes, hosts } => Topology::Torus { dims: sizes.0.clone(), hosts: hosts.hosts },
        Kind::Hyperx { sizes, parallel, hosts } => {
            Topology::HyperX { dims: sizes.0.clone(), width: *parallel, hosts: hosts.hosts }
        }
        Kind::Dragonfly { p, a, h, g } => Topology::Dragonfly { p: *p, a: *a, h: *h, g: *g },
        Kind::DragonflyPlus { p, leaves, spines, h, g } => {
            Topology::DragonflyPlus { p: *p, leaves: *leaves, spines: *spines, h: *h, g: *g }
        }
        Kind::Kautz { degree, diameter, hosts } => {
            Topology::Kautz { degree: *degree, diameter: *diameter, hosts: hosts.hosts }
        }
        Kind::RandomRegular { switches, degree, hosts } => {
            Topology::RandomRegular { switches: *switches, degree: *degree, hosts: hosts.hosts }
        }
        Kind::Line { switches, hosts } => Topology::Line { switches: *switches, hosts: hosts.hosts },
    }
}

fn options(variation: &Variation) -> Options {
    Options {
        dual_port: variation.dual_port,
        dual_rail: variation.dual_rail,
        missing_links: variation.missing_links / 100.0,
        degraded_links: variation.degraded_links / 100.0,
        missing_switches: variation.missing_switches,
        seed: variation.seed,
        names: if variation.odd_names { Names::Odd } else { Names::Plain },
        ..Options::default()
    }
}

fn render(fabric: &Fabric, format: FileFormat) -> String {
    // Hosts come first; a network of switches only is seen from the first one's port 0.
    let first = fabric.nodes().next();
    let from = first.map(|(node, n)| PortRef { node, port: PortNum(u8::from(!n.is_switch())) });
    match (format, from) {
        (FileFormat::Ibsim, _) | (FileFormat::Text, None) => ibsim::write(fabric),
        (FileFormat::Json, from) => json::write(fabric, from),
        (FileFormat::Text, Some(from)) => {
            let options = ibnetdiscover::WriteOptions { from, generated: NO_DATE, full: false };
            let text = ibnetdiscover::write(fabric, &options);
            let written =
                text.lines().filter(|line| line.contains("guid=0x") && !line.starts_with("sys")).count();
            if written < fabric.node_count() {
                complain(&format!(
                    "{} nodes have no way to {} and are left out, as ibnetdiscover would not find them",
                    fabric.node_count() - written,
                    fabric.node(from.node).description
                ));
            }
            text
        }
    }
}
