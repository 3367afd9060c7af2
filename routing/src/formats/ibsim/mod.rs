//! Net files of ibsim, the fabric simulator: read as ibsim 0.10 reads them, and written.
//!
//! Nodes are named, not numbered: `Switch 8 "name"`, `Hca 2 "name"` (or `Ca`, `Rt`), then a line `[1] "peer"[2]` for each
//! connected port. GUIDs are counted up from `switchguid=`, `caguid=`/`hcaguids=` and `rtguid=`; `vendid=`, `devid=` and
//! `sysimgguid=` stand before a node. Widths and speeds come from `w=`, `s=`, `e=` or from a comment like
//! `# lid 5 4xEDR`; a link runs at what both ends allow.

mod read;
#[cfg(test)]
mod tests;
mod write;

pub use read::{Includes, files_beside, read, read_with};
pub use write::write;
