//! The packets: requests with their answers, and the frames of an opened descriptor. Integers are in the host's order:
//! both ends are on one machine.

/// The largest packet that either side sends; what is larger goes by a memory file that accompanies the packet.
pub const MAX_PACKET: usize = 16 * 1024;

const MAGIC: [u8; 4] = *b"rsm1";

/// What [`Request::Open`] opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceKind {
    /// `/dev/infiniband/umadN`.
    Umad,
    /// `/dev/infiniband/issmN`.
    Issm,
}

/// What a program asks of an opened descriptor besides plain writes and reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// ioctl `ENABLE_PKEY`.
    EnablePkey,
    /// ioctl `REGISTER_AGENT`; the payload is the structure, and so is the answer's.
    RegisterAgent,
    /// ioctl `REGISTER_AGENT2`; the payload is the structure, and so is the answer's.
    RegisterAgent2,
    /// ioctl `UNREGISTER_AGENT`; the payload is the number, 4 bytes.
    UnregisterAgent,
    /// A write whose error number the caller needs; the payload is what was written.
    Write,
    /// After `exec`: what is known of the descriptor. The answer's payload is one byte: 1 after `ENABLE_PKEY`.
    State,
    /// The descriptor's rings, which it has from now on; a file with their memory comes with the answer.
    Rings,
}

/// The first packet of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// Opens a device of the nodes that [`crate::ENV_NODE`] names. The answer's payload is one byte: the port's number. An
    /// issm that somebody holds answers when it is free.
    Open {
        /// umad or issm.
        kind: DeviceKind,
        /// The number in the device's name.
        number: u32,
        /// Whether `O_NONBLOCK` was given.
        nonblocking: bool,
        /// As in [`crate::ENV_NODE`].
        node: &'a str,
    },
    /// Brings the sysfs tree of these nodes up to date; the answer's payload is the tree's root.
    Refresh {
        /// As in [`crate::ENV_NODE`].
        node: &'a str,
    },
    /// Something about an opened descriptor.
    Operation {
        /// What.
        operation: Operation,
        /// The session's key: the abstract name of the client's end.
        session: &'a str,
        /// As the operation says.
        payload: &'a [u8],
    },
    /// A console command; the answer's payload is its output.
    Console {
        /// One line.
        line: &'a str,
    },
}

impl<'a> Request<'a> {
    /// The packet.
    pub fn encode(&self) -> Vec<u8> {
        let (kind, flag, number, text, payload): (u8, u8, u32, &str, &[u8]) = match *self {
            Self::Open { kind: DeviceKind::Umad, number, nonblocking, node } => {
                (1, nonblocking.into(), number, node, &[])
            }
            Self::Open { kind: DeviceKind::Issm, number, nonblocking, node } => {
                (2, nonblocking.into(), number, node, &[])
            }
            Self::Refresh { node } => (3, 0, 0, node, &[]),
            Self::Operation { operation, session, payload } => (4, operation as u8, 0, session, payload),
            Self::Console { line } => (5, 0, 0, line, &[]),
        };
        let mut packet = Vec::with_capacity(12 + text.len() + payload.len());
        packet.extend_from_slice(&MAGIC);
        packet.extend_from_slice(&[kind, flag]);
        packet.extend_from_slice(&(text.len() as u16).to_ne_bytes());
        packet.extend_from_slice(&number.to_ne_bytes());
        packet.extend_from_slice(text.as_bytes());
        packet.extend_from_slice(payload);
        packet
    }

    /// Reads a packet; `None` for anything that [`Request::encode`] does not write.
    pub fn decode(packet: &'a [u8]) -> Option<Self> {
        let (head, rest) = packet.split_at_checked(12)?;
        if head[..4] != MAGIC {
            return None;
        }
        let text_len = u16::from_ne_bytes([head[6], head[7]]);
        let number = u32::from_ne_bytes([head[8], head[9], head[10], head[11]]);
        let (text, payload) = rest.split_at_checked(text_len.into())?;
        let text = std::str::from_utf8(text).ok()?;
        let open = |kind| Self::Open { kind, number, nonblocking: head[5] != 0, node: text };
        match head[4] {
            1 => Some(open(DeviceKind::Umad)),
            2 => Some(open(DeviceKind::Issm)),
            3 => Some(Self::Refresh { node: text }),
            4 => {
                let operation = match head[5] {
                    0 => Operation::EnablePkey,
                    1 => Operation::RegisterAgent,
                    2 => Operation::RegisterAgent2,
                    3 => Operation::UnregisterAgent,
                    4 => Operation::Write,
                    5 => Operation::State,
                    6 => Operation::Rings,
                    _ => return None,
                };
                Some(Self::Operation { operation, session: text, payload })
            }
            5 => Some(Self::Console { line: text }),
            _ => None,
        }
    }
}

/// The answer to a [`Request`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// 0, or an error number of `errno.h`.
    pub errno: i32,
    /// As the request says.
    pub payload: Vec<u8>,
}

impl Reply {
    /// Success.
    pub fn ok(payload: impl Into<Vec<u8>>) -> Self {
        Self { errno: 0, payload: payload.into() }
    }

    /// Failure.
    pub const fn error(errno: i32) -> Self {
        Self { errno, payload: Vec::new() }
    }

    /// The packet.
    pub fn encode(&self) -> Vec<u8> {
        let mut packet = self.errno.to_ne_bytes().to_vec();
        packet.extend_from_slice(&self.payload);
        packet
    }

    /// Reads a packet; `None` when it is too short to be one.
    pub fn decode(packet: &[u8]) -> Option<Self> {
        let (errno, payload) = packet.split_first_chunk()?;
        Some(Self { errno: i32::from_ne_bytes(*errno), payload: payload.to_vec() })
    }
}

/// How a [`Frame`] carries its MAD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// The bytes after the prefix are all.
    Whole,
    /// The bytes after the prefix are the beginning (umad header and first segment); a memory file that came with the
    /// packet holds all.
    InFile,
    /// Nothing but the sign that packets wait in the ring to the program.
    Token,
    /// Nothing but a call to look at the rings.
    Bell,
}

/// The prefix of every packet on an opened umad descriptor, either way. After it come umad header and MAD as in the
/// kernel's read and write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Where the rest is.
    pub kind: FrameKind,
    /// Bytes of umad header and MAD together.
    pub length: u32,
}

impl Frame {
    /// Bytes of the prefix.
    pub const LEN: usize = 8;

    /// The prefix.
    pub const fn encode(&self) -> [u8; Self::LEN] {
        let kind: u32 = match self.kind {
            FrameKind::Whole => 1,
            FrameKind::InFile => 2,
            FrameKind::Token => 3,
            FrameKind::Bell => 4,
        };
        let [a, b, c, d] = kind.to_ne_bytes();
        let [e, f, g, h] = self.length.to_ne_bytes();
        [a, b, c, d, e, f, g, h]
    }

    /// Reads a prefix; `None` for an unknown kind.
    pub fn decode(prefix: &[u8; Self::LEN]) -> Option<Self> {
        let [a, b, c, d, e, f, g, h] = *prefix;
        let kind = match u32::from_ne_bytes([a, b, c, d]) {
            1 => FrameKind::Whole,
            2 => FrameKind::InFile,
            3 => FrameKind::Token,
            4 => FrameKind::Bell,
            _ => return None,
        };
        Some(Self { kind, length: u32::from_ne_bytes([e, f, g, h]) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_survive_and_rubbish_is_refused() {
        let requests = [
            Request::Open { kind: DeviceKind::Umad, number: 3, nonblocking: true, node: "H1,0x10" },
            Request::Open { kind: DeviceKind::Issm, number: 0, nonblocking: false, node: "" },
            Request::Refresh { node: "S-0x5" },
            Request::Operation { operation: Operation::Write, session: "x.1", payload: &[1, 2, 3] },
            Request::Operation { operation: Operation::State, session: "", payload: &[] },
            Request::Console { line: "Unlink \"S1\"[5]" },
        ];
        for request in requests {
            let packet = request.encode();
            assert_eq!(Request::decode(&packet), Some(request));
            for cut in 0..12 {
                assert_eq!(Request::decode(&packet[..cut]), None);
            }
        }
        assert_eq!(Request::decode(b"GET / HTTP/1.1\r\n\r\n"), None);
        let mut packet = Request::Refresh { node: "abc" }.encode();
        packet[6..8].copy_from_slice(&u16::MAX.to_ne_bytes());
        assert_eq!(Request::decode(&packet), None, "a text longer than the packet");
        packet[6..8].copy_from_slice(&3_u16.to_ne_bytes());
        packet[12] = 0xff;
        assert_eq!(Request::decode(&packet), None, "a text that is none");
    }

    #[test]
    fn frames_survive() {
        for kind in [FrameKind::Whole, FrameKind::InFile, FrameKind::Token, FrameKind::Bell] {
            let frame = Frame { kind, length: 320 };
            assert_eq!(Frame::decode(&frame.encode()), Some(frame));
        }
        assert_eq!(Frame::decode(&[0; 8]), None);
    }
}
