//! The topology files that tests take where they are: captures of real fabrics, in the folder that `RSM_CAPTURES` names or in
//! `shared/captures` of a folder above; where there is none the test says so, and takes two files of our own.
//!
//! Included by the tests of several crates, which find the files from their own folder.

use std::path::{Path, PathBuf};

/// In the order of their names.
pub(crate) fn files() -> Vec<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let above =
        || here.ancestors().map(|folder| folder.join("shared/captures")).find(|folder| folder.is_dir());
    let folder = std::env::var_os("RSM_CAPTURES").map(PathBuf::from).or_else(above);
    let Some(folder) = folder else {
        println!("no folder of captures: set RSM_CAPTURES to check against real fabrics");
        return ["odd-from-h1.txt", "torus-lmc1-from-H5.txt"]
            .map(|name| here.join("../testdata/ibnetdiscover").join(name))
            .to_vec();
    };
    let mut files: Vec<PathBuf> = ["ibnetdiscover", "ibdiagnet-lst", "ibsim-net"]
        .iter()
        .flat_map(|kind| std::fs::read_dir(folder.join(kind)).unwrap().map(|e| e.unwrap().path()))
        .collect();
    files.sort();
    files
}
