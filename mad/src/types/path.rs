//! A directed route: the list of exit ports from the sender to a node (specification volume 1, 14.2.2).

use std::fmt;

use super::PortNum;

/// The most hops that a directed-route SMP can take: InitialPath has 64 bytes, the first of them unused.
pub const MAX_HOPS: usize = 63;

/// A route would be longer than [`MAX_HOPS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("directed route longer than {MAX_HOPS} hops")]
pub struct PathTooLong;

/// Exit ports from the sending node outwards; empty is the sending node itself. Cheap to copy.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct DirectedPath {
    hops: [u8; MAX_HOPS],
    len: u8,
}

impl DirectedPath {
    /// The route to the sending node itself.
    pub const LOCAL: Self = Self { hops: [0; MAX_HOPS], len: 0 };

    /// A route from a list of exit ports.
    pub fn new(ports: &[u8]) -> Result<Self, PathTooLong> {
        let mut path = Self::LOCAL;
        path.hops.get_mut(..ports.len()).ok_or(PathTooLong)?.copy_from_slice(ports);
        path.len = ports.len() as u8;
        Ok(path)
    }

    /// This route and one hop more, out of `port` of the node that it leads to.
    pub fn extend(&self, port: PortNum) -> Result<Self, PathTooLong> {
        let mut path = *self;
        *path.hops.get_mut(usize::from(self.len)).ok_or(PathTooLong)? = port.0;
        path.len += 1;
        Ok(path)
    }

    /// The exit ports.
    pub fn ports(&self) -> &[u8] {
        &self.hops[..usize::from(self.len)]
    }

    /// Number of hops.
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether this is the route to the sending node itself.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl PartialOrd for DirectedPath {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for DirectedPath {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.ports().cmp(other.ports())
    }
}

impl fmt::Display for DirectedPath {
    /// As infiniband-diags write it: `0,1,3`, with the sender's 0 in front.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("0")?;
        self.ports().iter().try_for_each(|port| write!(f, ",{port}"))
    }
}

impl fmt::Debug for DirectedPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DirectedPath({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_holds_63_hops_and_refuses_the_64th() {
        let mut path = DirectedPath::LOCAL;
        for hop in 0..MAX_HOPS {
            path = path.extend(PortNum(hop as u8)).unwrap();
        }
        assert_eq!(path.len(), MAX_HOPS);
        assert_eq!(path.extend(PortNum(1)), Err(PathTooLong));
        assert_eq!(DirectedPath::new(&[1; 64]), Err(PathTooLong));
        assert_eq!(DirectedPath::new(&[1, 3]).unwrap().to_string(), "0,1,3");
    }
}
