//! Faults beyond single links: cable swaps, partitions of the fabric, changed identities.

use mad::types::Guid;

use super::{End, World};
use crate::device::notices::Issuer;

impl World {
    /// Exchanges the far ends of two ports' cables. False when either has none.
    pub fn swap_cables(&mut self, a: End, b: End) -> bool {
        let (Some(far_a), Some(far_b)) = (self.peer(a), self.peer(b)) else { return false };
        if far_a == b {
            return false;
        }
        self.unlink(a);
        self.unlink(b);
        self.connect(a, far_b) && self.connect(b, far_a)
    }

    /// Pulls the cable of `from` at its near end and plugs it into `to`. False when there is no cable, or `to` is taken.
    pub fn move_cable(&mut self, from: End, to: End) -> bool {
        if self.peer(to).is_some() {
            return false;
        }
        self.unlink(from).is_some_and(|far| self.connect(to, far))
    }

    /// Pulls every cable between devices of `part` and the others; returns the pulled cables for [`World::merge`].
    pub fn split(&mut self, part: impl Fn(u32) -> bool) -> Vec<(End, End)> {
        let cut: Vec<(End, End)> = self.cables().filter(|(a, b)| part(a.node) != part(b.node)).collect();
        cut.iter().for_each(|(a, _)| {
            self.unlink(*a);
        });
        cut
    }

    /// Plugs cables in again that [`World::split`] pulled; returns how many found both ports free.
    pub fn merge(&mut self, cables: &[(End, End)]) -> usize {
        cables.iter().filter(|(a, b)| self.connect(*a, *b)).count()
    }

    /// Changes a device's SystemImageGUID and tells it by trap 145.
    pub fn set_system_image(&mut self, node: u32, guid: Guid) {
        let device = self.device_mut(node);
        device.node_info.system_image_guid.set(guid.0);
        for number in self.device(node).end_ports() {
            let end = End::new(node, number);
            self.raise_trap(end, Issuer::of(self.device(node), end.port).system_image(guid.0));
        }
    }
}
