//! What the tests themselves know of a net file, read without the help of the code under test.

use std::path::{Path, PathBuf};

/// A node of a net file.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) switch: bool,
    pub(crate) name: String,
    pub(crate) ports: usize,
    /// (port, peer's name, peer's port)
    pub(crate) links: Vec<(u8, String, u8)>,
}

/// A net file.
#[derive(Clone, Debug)]
pub(crate) struct Net {
    pub(crate) path: PathBuf,
    pub(crate) nodes: Vec<Node>,
}

impl Net {
    /// A file of `testdata/nets`.
    pub(crate) fn own(name: &str) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
        Self::read(&root.join("testdata/nets").join(name))
    }

    /// An example of ibsim's Debian package.
    pub(crate) fn example(name: &str) -> Self {
        let folder = std::env::var_os("RSM_IBSIM_EXAMPLES")
            .map_or_else(|| PathBuf::from("/usr/share/doc/ibsim-utils/net-examples"), PathBuf::from);
        Self::read(&folder.join(name))
    }

    pub(crate) fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let mut nodes: Vec<Node> = Vec::new();
        for line in text.lines() {
            let quoted: Vec<&str> = line.split('"').collect();
            if ["Switch", "Hca", "Ca\t"].iter().any(|word| line.starts_with(word)) {
                let ports = quoted[0].split_whitespace().nth(1).expect("port count").parse().expect("number");
                nodes.push(Node {
                    switch: line.starts_with('S'),
                    name: quoted[1].to_owned(),
                    ports,
                    links: vec![],
                });
            } else if line.starts_with('[') {
                let own = bracketed(line);
                let peer_port = bracketed(&quoted[2][quoted[2].find('[').expect("peer port")..]);
                let links = &mut nodes.last_mut().expect("a node before its links").links;
                links.push((own, quoted[1].to_owned(), peer_port));
            }
        }
        assert!(!nodes.is_empty(), "{}: no node", path.display());
        Self { path: path.to_path_buf(), nodes }
    }

    pub(crate) fn hosts(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(|n| !n.switch)
    }

    pub(crate) fn switches(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(|n| n.switch)
    }

    /// Hosts whose port 1 has a cable: programs can be attached to these.
    pub(crate) fn attachable(&self) -> Vec<String> {
        self.hosts().filter(|h| h.links.iter().any(|l| l.0 == 1)).map(|h| h.name.clone()).collect()
    }

    /// Connected ports of hosts.
    pub(crate) fn host_ports(&self) -> usize {
        self.hosts().map(|h| h.links.len()).sum()
    }

    pub(crate) fn links(&self) -> usize {
        self.nodes.iter().map(|n| n.links.len()).sum::<usize>() / 2
    }
}

/// The number in `[12]` at the start.
fn bracketed(text: &str) -> u8 {
    let end = text.find(']').expect("closing bracket");
    text[1..end].trim().parse().expect("port number")
}
