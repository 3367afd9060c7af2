//! Bad requests: counted by kind, and told in the log, one line of each kind a minute (B70).

use mad::types::Timestamp;
use mad::wire::Status;

use crate::merge::PAUSE;

/// What was wrong with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Complaint {
    /// A version of the class other than 2, or no MAD of this class at all.
    Version,
    /// A method that the class doesn't have.
    Method,
    /// An attribute that is not served, or not with this method.
    Attribute,
    /// A value or AttributeModifier that can't be, or components that are missing.
    Field,
    /// Something that this requester may not do, or a source GID that is another port's.
    Denied,
    /// A wrong SM_Key.
    Key,
    /// A request in segments that broke off or claimed what can't be.
    Segments,
}

impl Complaint {
    /// All kinds.
    pub const ALL: [Self; 7] =
        [Self::Version, Self::Method, Self::Attribute, Self::Field, Self::Denied, Self::Key, Self::Segments];

    /// What an answer complains of; `None` where nobody did anything wrong.
    pub(super) fn of(status: Status) -> Option<Self> {
        Some(match status {
            Status::BAD_VERSION => Self::Version,
            Status::METHOD_NOT_SUPPORTED => Self::Method,
            Status::METHOD_ATTRIBUTE_NOT_SUPPORTED => Self::Attribute,
            Status::INVALID_FIELD
            | Status::SA_REQ_INVALID
            | Status::SA_INSUFFICIENT_COMPONENTS
            | Status::SA_INVALID_GID => Self::Field,
            Status::SA_REQ_DENIED => Self::Denied,
            _ => return None,
        })
    }

    /// One word for it, where it is counted.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Version => "version",
            Self::Method => "method",
            Self::Attribute => "attribute",
            Self::Field => "field",
            Self::Denied => "denied",
            Self::Key => "key",
            Self::Segments => "segments",
        }
    }

    const fn in_words(self) -> &'static str {
        match self {
            Self::Version => "not of version 2 of the class",
            Self::Method => "a method that the class does not have",
            Self::Attribute => "an attribute that is not served by this method",
            Self::Field => "a value that can't be, or a component missing",
            Self::Denied => "what this port may not do, or a source GID of another port",
            Self::Key => "a wrong SM_Key: not answered",
            Self::Segments => "segments that broke off or can't be",
        }
    }
}

/// Counts, and when each kind was told last.
#[derive(Clone, Debug, Default)]
pub(super) struct Complaints {
    counts: [u64; Complaint::ALL.len()],
    told: [Option<(Timestamp, u64)>; Complaint::ALL.len()],
}

impl Complaints {
    /// Counts one from a LID. Whether it was told: the first of its kind, and later ones after a pause, with how many came
    /// meanwhile.
    pub(super) fn note(&mut self, complaint: Complaint, lid: u16, now: Timestamp) -> bool {
        let (count, told) = (&mut self.counts[complaint as usize], &mut self.told[complaint as usize]);
        *count += 1;
        if told.is_some_and(|(at, _)| now < at + PAUSE) {
            return false;
        }
        let before = told.map_or(0, |(_, before)| before);
        *told = Some((now, *count));
        tracing::warn!(lid, requests = *count - before, "a bad SA request: {}", complaint.in_words());
        true
    }

    pub(super) const fn count(&self, complaint: Complaint) -> u64 {
        self.counts[complaint as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b70_each_bad_request_is_counted_and_one_a_minute_is_told() {
        let mut complaints = Complaints::default();
        let at = |ms: u64| Timestamp(ms * 1_000_000);
        let told = (0..180_000).filter(|ms| complaints.note(Complaint::Key, 7, at(*ms))).count();
        assert_eq!((told, complaints.count(Complaint::Key)), (3, 180_000));
        assert!(complaints.note(Complaint::Field, 7, at(1)), "each kind for itself");
        assert_eq!(Complaint::ALL.map(|kind| kind as usize), [0, 1, 2, 3, 4, 5, 6]);
    }
}
