//! rsm against programs that others wrote: ibsim as the fabric, and the unmodified tools of infiniband-diags, opensm and
//! ibutils on it. They come from Debian packages; `./test.sh` installs them.

mod net;
mod sim;
mod wire;

mod harness;
