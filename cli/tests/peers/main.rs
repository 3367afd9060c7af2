//! rsm against programs that others wrote: ibsim and `rsm emulate` as the fabric, and the unmodified tools of
//! infiniband-diags, opensm and ibutils on them. They come from Debian packages; `./test.sh` installs them.

mod emulator;
mod fabric;
mod harness;
mod ibdmchk;
mod net;
mod priorities;
mod program;
mod sa;
mod sim;
mod wire;

mod bad_input;
mod bring_up;
mod changes;
mod devices;
mod emulate;
mod etcd;
mod failover;
mod files;
mod generate;
mod keys;
mod load;
mod look;
mod osmtest;
mod pairs;
mod qos;
mod query;
mod records;
mod same;
mod two_devices;
mod umad_device;

/// An example program of this crate; cargo builds them with the tests.
fn example(name: &str) -> String {
    let own = std::env::current_exe().expect("path of this program");
    let folder = own.parent().and_then(|deps| deps.parent()).expect("target folder").join("examples");
    let path = folder.join(name);
    assert!(path.exists(), "{} is not there; cargo test builds it", path.display());
    path.to_str().expect("text").to_owned()
}

/// The seed of this run, printed; RSM_SEED repeats one.
#[expect(clippy::print_stdout, reason = "shown when the test fails")]
fn seed() -> u64 {
    let seed = std::env::var("RSM_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
        u64::from(now.subsec_nanos())
    });
    println!("RSM_SEED={seed}");
    seed
}
