//! Tables of a dump, with the service levels that lie beside it.
//!
//! A text dump of forwarding tables has no room for service levels. `rsm route -o` and `rsm run --dump-dir` write these into
//! `path-sl.dump` beside it, which says whether `opensm-sl2vl.dump` goes with them.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use routing::fabric::{Fabric, SwitchGraph};
use routing::formats::tables::Tables;
use routing::formats::{path_sl, routes_json, sl2vl, tables};
use routing::routes::{LftMatrix, Routes, SlToVl};

use super::offline::{text, usage};
use crate::failure::{Outcome, complain};

/// Service levels beside tables.
const PATH_SL: &str = "path-sl.dump";
/// SL-to-VL tables beside them, under the name that opensm gives them.
const SL2VL: &str = "opensm-sl2vl.dump";

/// What is written beside tables: service levels, and the SL-to-VL tables where VL is not SL. Names and contents; a file without
/// is to be removed, since one of earlier tables would be taken for one of these.
pub(crate) fn levels(graph: &SwitchGraph, routes: &Routes) -> [(&'static str, Option<String>); 2] {
    let lanes = (routes.sl_to_vl != SlToVl::Identity).then(|| sl2vl::write(graph, &routes.sl_to_vl));
    [(PATH_SL, Some(path_sl::write(graph, routes))), (SL2VL, lanes)]
}

/// Removes a file that may not be there.
pub(crate) fn remove(path: &Path) -> std::io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// What was read.
pub(super) struct Dumped {
    pub(super) routes: Routes,
    /// The file that the service levels come from; `None` where there are none, so that all paths are of SL 0.
    pub(super) service_levels: Option<PathBuf>,
    /// What is odd, a line each; said already.
    pub(super) notes: Vec<String>,
}

/// Files that the caller names in place of those beside the tables.
#[derive(Default)]
pub(super) struct Named<'a> {
    pub(super) path_sl: Option<&'a Path>,
    pub(super) sl2vl: Option<&'a Path>,
}

/// The tables alone, where service levels are no matter.
pub(super) fn without_levels(path: &Path, graph: &SwitchGraph) -> Outcome<LftMatrix> {
    Ok(forwarding(path, &text(path)?, graph)?.routes.lfts)
}

fn forwarding(path: &Path, dump: &str, graph: &SwitchGraph) -> Outcome<Tables> {
    let read = tables::read(&path.display().to_string(), dump, graph).map_err(usage)?;
    read.warnings.iter().for_each(|warning| complain(warning));
    Ok(read)
}

/// Reads tables, and the service levels that are named, in the same file, or beside it.
pub(super) fn read(path: &Path, named: &Named<'_>, fabric: &Fabric, graph: &SwitchGraph) -> Outcome<Dumped> {
    let dump = text(path)?;
    let Tables { mut routes, warnings: mut notes } = forwarding(path, &dump, graph)?;
    let own = routes_json::is(&dump).then(|| path.to_path_buf());
    let beside = |name: &str| Some(path.with_file_name(name)).filter(|file| own.is_none() && file.exists());
    let levels = named.path_sl.map(Path::to_path_buf).or_else(|| beside(PATH_SL));
    let mut lanes = named.sl2vl.map(Path::to_path_buf);
    if let Some(file) = &levels {
        let levels = text(file)?;
        if lanes.is_none() && path_sl::goes_with_tables(&levels) {
            lanes = Some(file.with_file_name(SL2VL));
        }
        routes.sl = path_sl::read(&file.display().to_string(), &levels, fabric, graph).map_err(usage)?;
    }
    if let Some(file) = &lanes {
        let read = sl2vl::read(&file.display().to_string(), &text(file)?, graph).map_err(usage)?;
        read.warnings.iter().for_each(|warning| complain(warning));
        notes.extend(read.warnings);
        routes.sl_to_vl = read.sl_to_vl;
    }
    Ok(Dumped { routes, service_levels: levels.or(own), notes })
}
