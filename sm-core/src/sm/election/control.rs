//! Set(SMInfo): what a manager may ask of another, by the state that each is in (14.4.1).

use mad::wire::smp::{SmControl, SmState};

use super::{Election, Order, Peer, Watched};

/// The state that follows, or `None` where the modifier is not legal in `state`.
///
/// | | HANDOVER | ACKNOWLEDGE | DISABLE | STANDBY | DISCOVER |
/// | --- | --- | --- | --- | --- | --- |
/// | DISCOVERING | DISCOVERING | – | – | – | – |
/// | STANDBY | MASTER | STANDBY | NOTACTIVE | – | DISCOVERING |
/// | MASTER | MASTER | MASTER | – | – | DISCOVERING |
/// | NOTACTIVE | – | – | – | STANDBY | – |
pub(super) const fn next(state: SmState, control: SmControl) -> Option<SmState> {
    match (state, control) {
        (SmState::Discovering, SmControl::Handover)
        | (SmState::Standby | SmState::Master, SmControl::Discover) => Some(SmState::Discovering),
        (SmState::Standby, SmControl::Acknowledge) | (SmState::NotActive, SmControl::Standby) => {
            Some(SmState::Standby)
        }
        (SmState::Standby | SmState::Master, SmControl::Handover)
        | (SmState::Master, SmControl::Acknowledge) => Some(SmState::Master),
        (SmState::Standby, SmControl::Disable) => Some(SmState::NotActive),
        _ => None,
    }
}

/// Whether a manager in this state may send it: all but ACKNOWLEDGE are for masters.
const fn may_send(state: SmState, control: SmControl) -> bool {
    match control {
        SmControl::Acknowledge => matches!(state, SmState::Standby | SmState::Master),
        _ => matches!(state, SmState::Master),
    }
}

impl Election {
    /// A Set(SMInfo) came. False: it is illegal, not from whom it says or not trusted, and nothing is done; the reply then
    /// has status 7.
    pub(crate) fn controlled(&mut self, control: SmControl, sender: Peer) -> bool {
        let forged = !sender.trusted || sender.rank.guid == self.rank.guid;
        let Some(next) = next(self.state, control).filter(|_| !forged && may_send(sender.state, control))
        else {
            return false;
        };
        let before = self.state;
        match control {
            SmControl::Acknowledge => {}
            SmControl::Handover => {
                self.examine(next);
                self.send(SmControl::Acknowledge, sender.rank.guid, before);
            }
            SmControl::Discover => self.examine(next),
            SmControl::Disable => {
                (self.state, self.watched) = (next, None);
                self.orders.push(Order::Stop);
            }
            SmControl::Standby => {
                self.state = next;
                self.watched = Some(Watched::new(sender.rank.guid));
            }
        }
        true
    }
}
