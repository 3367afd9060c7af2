//! From a query to its paths: which ports its ends may be, how many paths it gets.

use std::ops::ControlFlow;

use mad::types::Gid;
use mad::wire::Status;

use super::{Ends, Pair, Path, Side, Wanted};
use crate::snapshot::{EndPort, Snapshot};

/// A query for paths between ports of this subnet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathQuery {
    /// The source.
    pub source: Side,
    /// The destination.
    pub target: Side,
    /// What the paths must be like.
    pub wanted: Wanted,
    /// The most paths between one source port and one destination port; `None`: all.
    pub paths_per_pair: Option<u8>,
}

impl PathQuery {
    /// The one best path, for a Get; `None` when there is none. Of an end that is left open the requester's own port is
    /// tried first, then every port in order of LID (B43).
    ///
    /// # Errors
    /// INVALID_GID, or REQ_INVALID for contradictions.
    pub fn best(&self, snapshot: &Snapshot, requester: &EndPort) -> Result<Option<Path>, Status> {
        let sources = Ends::resolve(snapshot, self.source)?;
        let targets = Ends::resolve(snapshot, self.target)?;
        let near = |ends| if matches!(ends, Ends::Any) { Ends::One(requester, None) } else { ends };
        let attempts = match (sources, targets) {
            (Ends::Any, Ends::Any) => vec![(near(sources), targets)],
            (Ends::Any, _) | (_, Ends::Any) => vec![(near(sources), near(targets)), (sources, targets)],
            _ => vec![(sources, targets)],
        };
        for (sources, targets) in attempts {
            let mut best = None;
            let one = Self { paths_per_pair: Some(1), ..*self };
            let _ = one.each(snapshot, requester, sources, targets, &mut |path| {
                best = Some(*path);
                ControlFlow::Break(())
            });
            if best.is_some() {
                return Ok(best);
            }
        }
        Ok(None)
    }

    /// All paths, for a GetTable, each handed to `emit`, until it says stop.
    ///
    /// # Errors
    /// As [`PathQuery::best`].
    pub fn all(
        &self,
        snapshot: &Snapshot,
        requester: &EndPort,
        emit: &mut dyn FnMut(&Path) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, Status> {
        let sources = Ends::resolve(snapshot, self.source)?;
        let targets = Ends::resolve(snapshot, self.target)?;
        Ok(self.each(snapshot, requester, sources, targets, emit))
    }

    fn each(
        &self,
        snapshot: &Snapshot,
        requester: &EndPort,
        sources: Ends<'_>,
        targets: Ends<'_>,
        emit: &mut dyn FnMut(&Path) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let named = |side: Side, ends| side.gid.filter(|_| matches!(ends, Ends::One(..)));
        let (sgid, dgid): (Option<Gid>, Option<Gid>) =
            (named(self.source, sources), named(self.target, targets));
        let pair = Pair { snapshot, sources, targets, sgid, dgid };
        let limit = self.paths_per_pair.map_or(usize::MAX, usize::from);
        for source in sources.ports(snapshot) {
            if !requester.shares_partition(source) {
                continue;
            }
            let sgids = gids(snapshot, sgid, source);
            for target in targets.ports(snapshot) {
                if !requester.shares_partition(target) {
                    continue;
                }
                let dgids = gids(snapshot, dgid, target);
                for sgid in sgids.clone() {
                    for dgid in dgids.clone() {
                        let pair = Pair { sgid, dgid, ..pair };
                        pair.paths(source, target, &self.wanted, limit, emit)?;
                    }
                }
            }
        }
        ControlFlow::Continue(())
    }
}

/// The GIDs that an end is answered by: the one that the query names, or the port's own and then each alias.
fn gids(
    snapshot: &Snapshot,
    named: Option<Gid>,
    port: &EndPort,
) -> impl Iterator<Item = Option<Gid>> + Clone {
    let aliases = snapshot.aliases.of_port(port.guid).filter(move |_| named.is_none());
    std::iter::once(named).chain(aliases.map(|alias| Some(Gid::new(snapshot.sm.gid_prefix, alias))))
}
