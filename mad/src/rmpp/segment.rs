//! How a message is cut into datagrams (specification volume 1, 13.6.2), and the datagrams that carry no data.
//!
//! Every segment repeats the common header and the class's own header; data fills the rest. PayloadLength counts the
//! bytes after the RMPP header: in the first segment those of the whole message, class headers included, in the last one
//! its own, in others nothing.

use zerocopy::FromBytes;

use crate::wire::header::MAD_LEN;
use crate::wire::rmpp::{RmppHeader, RmppStatus, RmppType};
use crate::wire::sa::SA_HEADER_LEN;
use crate::wire::{Mad, Method, MgmtClass};

/// Bytes of the RMPP header, at the head of the datagram's body.
const RMPP_LEN: usize = size_of::<RmppHeader>();
/// Bytes after the RMPP header.
const PAYLOAD: usize = MAD_LEN - 24 - RMPP_LEN;

/// Bytes of a vendor class's header: one that is reserved, and the OUI.
const OUI_HEADER_LEN: usize = 4;

/// Where a class puts its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// Bytes of the class's own header after the RMPP header.
    class_header: usize,
}

impl Layout {
    /// The layout of a class; `None` when it has no RMPP or a layout that nobody here needs.
    pub(super) const fn of(class: MgmtClass) -> Option<Self> {
        match class.0 {
            0x03 => Some(Self { class_header: SA_HEADER_LEN }),
            _ if has_oui(class) => Some(Self { class_header: OUI_HEADER_LEN }),
            _ => None,
        }
    }

    /// Bytes of data in a full segment.
    pub(super) const fn data_len(self) -> usize {
        PAYLOAD - self.class_header
    }

    /// Segments of a message; a message of no bytes takes one. `None` when they can't be numbered, or PayloadLength can't
    /// say the sum.
    pub(super) fn segments(self, bytes: usize) -> Option<u32> {
        let segments = bytes.div_ceil(self.data_len()).max(1);
        u32::try_from(segments.checked_mul(PAYLOAD)?).ok()?;
        u32::try_from(segments).ok()
    }

    /// Bytes of data in a message whose first segment announces this PayloadLength; 0 for "not known".
    pub(super) const fn data_of(self, payload_length: u32) -> usize {
        let payload = payload_length as usize;
        payload.saturating_sub(payload.div_ceil(PAYLOAD) * self.class_header)
    }

    /// A segment, numbered from 1, of a message of `segments`.
    pub(super) fn segment(self, head: &Mad, message: &[u8], segment: u32, segments: u32) -> Mad {
        let start = (segment as usize - 1) * self.data_len();
        let data = &message[start..message.len().min(start + self.data_len())];
        let mut flags = 0;
        let mut length = 0;
        if segment == 1 {
            flags |= RmppHeader::FLAG_FIRST;
            length = segments as usize * self.class_header + message.len();
        }
        if segment == segments {
            flags |= RmppHeader::FLAG_LAST;
            length = self.class_header + data.len();
        }
        // `segments()` has made sure that the sum fits.
        let header = RmppHeader::new(RmppType::Data, flags, RmppStatus::OK, segment, length as u32);
        let mut mad = *head;
        set_rmpp(&mut mad, &header);
        let place = RMPP_LEN + self.class_header;
        mad.body[place..].fill(0);
        mad.body[place..place + data.len()].copy_from_slice(data);
        mad
    }

    /// The data of a segment that is not the last.
    pub(super) fn data(self, mad: &Mad) -> &[u8] {
        &mad.body[RMPP_LEN + self.class_header..]
    }

    /// The data of a last segment; `None` when its PayloadLength is impossible.
    pub(super) fn last_data(self, mad: &Mad) -> Option<&[u8]> {
        let length = rmpp(mad).payload_length() as usize;
        self.data(mad).get(..length.checked_sub(self.class_header)?)
    }
}

/// The RMPP header of a datagram.
pub(super) fn rmpp(mad: &Mad) -> RmppHeader {
    let mut header = RmppHeader::new(RmppType::None, 0, RmppStatus::OK, 0, 0);
    if let Ok((found, _)) = RmppHeader::read_from_prefix(&mad.body) {
        header = found;
    }
    header
}

fn set_rmpp(mad: &mut Mad, header: &RmppHeader) {
    use zerocopy::IntoBytes;
    mad.body[..RMPP_LEN].copy_from_slice(header.as_bytes());
}

/// A datagram without data with the headers of `of`: an answer to it when `back`, where the R bit changes.
fn control(of: &Mad, back: bool, header: &RmppHeader) -> Mad {
    let mut mad = *of;
    if back {
        mad.header.method ^= Method::RESPONSE;
    }
    mad.header.status.set(0);
    set_rmpp(&mut mad, header);
    // The OUI of a vendor class stays: by it the other end finds its agent.
    let data = if has_oui(of.header.mgmt_class()) { RMPP_LEN + OUI_HEADER_LEN } else { RMPP_LEN };
    mad.body[data..].fill(0);
    mad
}

/// Whether the class is of the vendor range that an OUI divides.
const fn has_oui(class: MgmtClass) -> bool {
    matches!(class.0, 0x30..=0x4f)
}

/// An acknowledgement of `received` and all before it.
pub(super) fn ack(received: &Mad, segment: u32, new_window_last: u32) -> Mad {
    let header = RmppHeader::new(RmppType::Ack, 0, RmppStatus::OK, segment, new_window_last);
    control(received, true, &header)
}

/// A STOP for [`RmppStatus::RESOURCES_EXHAUSTED`], an ABORT for any other status; to the sender of `mad` when `back`, else to
/// whom `mad` goes.
pub(super) fn end(mad: &Mad, back: bool, status: RmppStatus) -> Mad {
    let kind = if status.is_stop() { RmppType::Stop } else { RmppType::Abort };
    control(mad, back, &RmppHeader::new(kind, 0, status, 0, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SA: Layout = Layout { class_header: 20 };

    /// Segment counts and PayloadLength at the borders: 0, one byte less than, exactly and one byte more than full segments.
    #[test]
    fn payload_length_follows_the_rule() {
        // (bytes, segments, first PayloadLength, last PayloadLength)
        let rows =
            [(0, 1, 20, 20), (1, 1, 21, 21), (200, 1, 220, 220), (201, 2, 241, 21), (400, 2, 440, 220)];
        let rows = rows.into_iter().chain([(1000, 5, 1100, 220), (999, 5, 1099, 219)]);
        for (bytes, segments, first, last) in rows {
            let message: Vec<u8> = (0..bytes).map(|i| i as u8).collect();
            assert_eq!(SA.segments(bytes), Some(segments), "{bytes}");
            let mut joined = Vec::new();
            for n in 1..=segments {
                let mad = SA.segment(&Mad::zeroed(), &message, n, segments);
                let header = rmpp(&mad);
                assert_eq!((header.segment_number(), header.is_active()), (n, true));
                assert_eq!((header.is_first(), header.is_last()), (n == 1, n == segments));
                if n == segments {
                    assert_eq!(header.payload_length(), last, "{bytes}");
                    joined.extend_from_slice(SA.last_data(&mad).unwrap());
                    assert_eq!(SA.data_of(first), bytes);
                } else {
                    assert_eq!(header.payload_length(), if n == 1 { first } else { 0 }, "{bytes}");
                    joined.extend_from_slice(SA.data(&mad));
                }
            }
            assert_eq!(joined, message);
        }
        assert_eq!(SA.segments(usize::MAX), None);
        assert_eq!(SA.segments(u32::MAX as usize), None);
    }

    /// B51: a last segment with a PayloadLength below the class header or beyond the datagram has no data.
    #[test]
    fn b51_impossible_last_lengths_are_refused() {
        for (length, data) in
            [(0, None), (19, None), (20, Some(0)), (220, Some(200)), (221, None), (255, None)]
        {
            let mut mad = Mad::zeroed();
            let header = RmppHeader::new(RmppType::Data, RmppHeader::FLAG_LAST, RmppStatus::OK, 1, length);
            set_rmpp(&mut mad, &header);
            assert_eq!(SA.last_data(&mad).map(<[u8]>::len), data, "{length}");
        }
    }

    #[test]
    fn control_datagrams_of_a_vendor_class_keep_its_oui() {
        let mut data = Mad::zeroed();
        data.header.mgmt_class = 0x4b;
        data.body.fill(7);
        for control in [ack(&data, 1, 2), end(&data, true, RmppStatus::TIME_TOO_LONG)] {
            let (head, rest) = control.body[RMPP_LEN..].split_at(4);
            assert!(head.iter().all(|b| *b == 7) && rest.iter().all(|b| *b == 0));
        }
    }

    #[test]
    fn control_datagrams_answer_with_the_other_r_bit() {
        let mut data = Mad::zeroed();
        data.header.method = Method::GET_TABLE_RESP.0;
        data.body.fill(7);
        let ack = ack(&data, 3, 9);
        assert_eq!(ack.header.method(), Method::GET_TABLE);
        let header = rmpp(&ack);
        assert_eq!(header.rmpp_type(), Some(RmppType::Ack));
        assert_eq!((header.segment_number(), header.new_window_last()), (3, 9));
        assert!(ack.body[RMPP_LEN..].iter().all(|b| *b == 0));
        assert_eq!(
            rmpp(&end(&data, true, RmppStatus::RESOURCES_EXHAUSTED)).rmpp_type(),
            Some(RmppType::Stop)
        );
        let abort = end(&data, false, RmppStatus::TOO_MANY_RETRIES);
        assert_eq!(abort.header.method(), Method::GET_TABLE_RESP);
        assert_eq!(rmpp(&abort).status(), RmppStatus::TOO_MANY_RETRIES);
    }
}
