//! The IsSM bit of the local port: set while the file is held open.

use super::OpenError;
use super::devices::DevicePort;
use super::sys::Fd;

/// While this lives, the local port's CapabilityMask says that a subnet manager runs there; other subnet
/// managers and the port's neighbours go by it. Made after the transport has its agents: a packet for a class
/// without agent has nobody to go to, and crashes the stock simulator's preload library.
#[derive(Debug)]
pub struct IsSm {
    _file: Fd,
}

impl IsSm {
    /// Sets the bit.
    ///
    /// # Errors
    /// No such file, no permission, or another program holds it.
    pub fn set(port: &DevicePort) -> Result<Self, OpenError> {
        let path = port
            .issm
            .as_deref()
            .ok_or_else(|| OpenError::NoIsSm { device: port.device.clone(), port: port.number })?;
        // Without O_NONBLOCK the call would wait until the other holder lets go.
        Fd::open(path, libc::O_RDONLY | libc::O_NONBLOCK | libc::O_CLOEXEC)
            .map(|file| Self { _file: file })
            .map_err(|source| match source.raw_os_error() {
                Some(libc::EAGAIN) => OpenError::Held {
                    device: port.device.clone(),
                    port: port.number,
                    what: format!("the SM flag ({path})"),
                },
                _ => OpenError::file(path, source),
            })
    }
}
