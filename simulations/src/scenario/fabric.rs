//! Which fabric a scenario plays on.

use routing::fabric::Fabric;
use routing::formats::ibsim;
use serde::{Deserialize, Serialize};

use crate::generate::{Options, Topology, generate};

/// The fabric of a scenario.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[expect(missing_docs, reason = "the parameters are those of `generate::Topology`")]
pub enum FabricSpec {
    /// A row of switches.
    Line { switches: u16, hosts: u16 },
    /// Two levels.
    Tree { leaves: u16, spines: u16, hosts: u16 },
    /// A general fat tree.
    Xgft { m: Vec<u16>, w: Vec<u16>, p: Vec<u16> },
    /// A torus.
    Torus { dims: Vec<u16>, hosts: u16 },
    /// A random regular graph.
    RandomRegular { switches: u16, degree: u16, hosts: u16 },
    /// A dragonfly.
    Dragonfly { p: u16, a: u16, h: u16, g: u16 },
    /// A dragonfly of groups with leaves and spines.
    DragonflyPlus { p: u16, leaves: u16, spines: u16, h: u16, g: u16 },
    /// A HyperX.
    HyperX { dims: Vec<u16>, width: u16, hosts: u16 },
    /// A Kautz graph.
    Kautz { degree: u16, diameter: u16, hosts: u16 },
    /// Node by node, in the words of an ibsim net file.
    Net { net: String },
}

impl FabricSpec {
    /// The fabric itself.
    ///
    /// # Errors
    /// Parameters that make no network; a net text with a fault, with its line there.
    pub fn fabric(&self, seed: u64) -> Result<Fabric, String> {
        let topology = match self.clone() {
            Self::Line { switches, hosts } => Topology::Line { switches, hosts },
            Self::Tree { leaves, spines, hosts } => Topology::tree(leaves, spines, hosts),
            Self::Xgft { m, w, p } => Topology::Xgft { m, w, p },
            Self::Torus { dims, hosts } => Topology::Torus { dims, hosts },
            Self::RandomRegular { switches, degree, hosts } => {
                Topology::RandomRegular { switches, degree, hosts }
            }
            Self::Dragonfly { p, a, h, g } => Topology::Dragonfly { p, a, h, g },
            Self::DragonflyPlus { p, leaves, spines, h, g } => {
                Topology::DragonflyPlus { p, leaves, spines, h, g }
            }
            Self::HyperX { dims, width, hosts } => Topology::HyperX { dims, width, hosts },
            Self::Kautz { degree, diameter, hosts } => Topology::Kautz { degree, diameter, hosts },
            Self::Net { net } => {
                return ibsim::read("net", &net).map(|loaded| loaded.fabric).map_err(|e| e.to_string());
            }
        };
        generate(&topology, &Options { seed, ..Options::default() }).map_err(|error| error.to_string())
    }
}
