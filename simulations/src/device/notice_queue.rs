//! The queue of notices of an end port, which a subnet manager reads where it is not told by traps (specification volume 1,
//! 13.4.8 and 14.2.5.1).
//!
//! Get(Notice) gives the oldest, with the number that wait; an empty notice where none does. Set(Notice) takes as many away as its
//! NoticeCount says, oldest first, if its NoticeToggle is that of the notice that was read. The toggle changes with each
//! clearing, so that a Set that comes twice takes nothing away that nobody has read. Ports have a queue whose
//! CapabilityMask tells IsNoticeSupported; those of the adapters and switches on the market do not.

use std::collections::VecDeque;

use mad::types::PortNum;
use mad::wire::smp::{Notice, NoticeType, PortInfo};
use mad::wire::{Attribute, Status};

use super::notices::is_same;
use super::sma::write;
use super::{Device, DevicePort};

/// Notices that a queue holds (the specification leaves it to the device); what happens while it is full is not noted.
const DEPTH: usize = 16;

/// Notices that wait to be read, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NoticeQueue {
    waiting: VecDeque<Notice>,
    toggle: bool,
}

impl NoticeQueue {
    fn log(&mut self, notice: Notice) {
        if self.waiting.len() < DEPTH && !self.waiting.iter().any(|waiting| is_same(waiting, &notice)) {
            self.waiting.push_back(notice);
        }
    }

    /// What Get(Notice) tells.
    fn head(&self) -> Notice {
        let mut notice = self.waiting.front().copied().unwrap_or_else(|| {
            let mut empty = Notice::generic(NoticeType::Empty, 0, 0, None);
            empty.set_is_generic_bit(0);
            empty
        });
        notice.set_notice_toggle(self.toggle.into());
        notice.set_notice_count(self.waiting.len() as u16);
        notice
    }

    fn clear(&mut self, read: &Notice) {
        let count = usize::from(read.notice_count()).min(self.waiting.len());
        if count > 0 && (read.notice_toggle() == 1) == self.toggle {
            self.waiting.drain(..count);
            self.toggle = !self.toggle;
        }
    }
}

impl DevicePort {
    fn has_notices(&self) -> bool {
        self.info.capability_mask.get() & PortInfo::CAP_IS_NOTICE_SUPPORTED != 0
    }

    /// Something happened of which a notice tells, whether it also goes out as a trap or not.
    pub fn log_notice(&mut self, notice: Notice) {
        if self.has_notices() {
            self.notices.log(notice);
        }
    }
}

impl Device {
    pub(super) fn notice(
        &mut self,
        in_port: PortNum,
        modifier: u32,
        set: bool,
        data: &mut [u8; 64],
    ) -> Result<(), Status> {
        let end = self.end_port(in_port);
        let port = self.port_mut(end).filter(|port| port.has_notices());
        let port = port.ok_or(Status::METHOD_ATTRIBUTE_NOT_SUPPORTED)?;
        if modifier != 0 {
            return Err(Status::INVALID_FIELD);
        }
        if set {
            port.notices.clear(&Notice::decode(data).ok_or(Status::INVALID_FIELD)?);
        }
        write(&port.notices.head(), data)
    }
}
