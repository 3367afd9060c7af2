//! A fat tree of three levels for measurements.

use mad::types::{Guid, Lid, NodeType, PortNum, PortState};
use routing::fabric::{Fabric, Node, NodeId, PortRef};

/// A three-level tree: `pods` pods of `half` leaves with `half` hosts and `half` middle switches, `half²` at the top.
pub(crate) struct Tree {
    fabric: Fabric,
    next_port: Vec<u8>,
    lid: u16,
}

impl Tree {
    fn node(&mut self, kind: NodeType, ports: u8) -> NodeId {
        let index = self.next_port.len() as u64;
        let mut node = Node::new(kind, Guid(0x0002_c900_0000_0000 + index * 2), format!("N{index}"), ports);
        self.lid += 1;
        let own = PortNum(u8::from(kind == NodeType::Ca));
        node.port_mut(own).expect("made with it").lid = Lid::new(self.lid);
        self.next_port.push(0);
        self.fabric.add_node(node).expect("GUIDs are counted up")
    }

    fn link(&mut self, a: NodeId, b: NodeId) {
        let [a, b] = [a, b].map(|node| {
            self.next_port[node.index()] += 1;
            PortRef { node, port: PortNum(self.next_port[node.index()]) }
        });
        self.fabric.connect(a, b).expect("free ports");
        for end in [a, b] {
            self.fabric.node_mut(end.node).port_mut(end.port).expect("connected").state = PortState::Active;
        }
    }

    pub(crate) fn build(half: usize, pods: usize) -> Fabric {
        let mut tree = Self { fabric: Fabric::new(), next_port: Vec::new(), lid: 0 };
        let radix = (2 * half) as u8;
        let top: Vec<NodeId> = (0..half * half).map(|_| tree.node(NodeType::Switch, radix)).collect();
        for _ in 0..pods {
            let middle: Vec<NodeId> = (0..half).map(|_| tree.node(NodeType::Switch, radix)).collect();
            for _ in 0..half {
                let leaf = tree.node(NodeType::Switch, radix);
                for _ in 0..half {
                    let host = tree.node(NodeType::Ca, 1);
                    tree.link(leaf, host);
                }
                middle.iter().for_each(|m| tree.link(leaf, *m));
            }
            for (group, m) in middle.iter().enumerate() {
                (0..half).for_each(|i| tree.link(*m, top[group * half + i]));
            }
        }
        tree.fabric
    }
}
