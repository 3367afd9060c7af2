//! The `rsm` command line.

fn main() {}
