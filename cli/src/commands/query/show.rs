//! Records as a table, as JSON, or byte by byte.

use std::fmt::Write;

use mad::wire::sa::{ClassPortInfo, Component, Record};
use serde_json::{Map, Value as Json};
use zerocopy::IntoBytes;

use super::fields::{Value, value};
use crate::failure::Outcome;

/// In which form records are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Columns for people.
    Table,
    /// An array of objects with all fields.
    Json,
    /// A line of hexadecimal digits for each record, as it lay in the answer.
    Raw,
}

/// Records of one type, without the type.
pub(super) struct Found {
    records: Vec<Vec<u8>>,
    components: &'static [Component],
    /// Fields that a table shows; none: all.
    columns: &'static [&'static str],
}

impl Found {
    pub(super) fn new<R: Record>(records: &[R], columns: &'static [&'static str]) -> Self {
        let records = records.iter().map(|record| record.as_bytes().to_vec()).collect();
        Self { records, components: R::COMPONENTS, columns }
    }

    fn fields(&self) -> impl Iterator<Item = &Component> + Clone {
        self.components.iter().filter(|component| !component.is_reserved())
    }
}

/// The output for records; a table says so when there are none.
pub(super) fn show(found: &Found, form: Form) -> Outcome<String> {
    Ok(match form {
        Form::Table => table(found),
        Form::Json => {
            let object = |record: &Vec<u8>| {
                found.fields().map(|c| (c.name.to_owned(), value(record, c).to_json())).collect::<Map<_, _>>()
            };
            let records: Vec<Json> =
                found.records.iter().map(|record| Json::Object(object(record))).collect();
            format!("{}\n", serde_json::to_string_pretty(&records)?)
        }
        Form::Raw => {
            found.records.iter().map(|record| format!("{}\n", Value::Bytes(record.clone()))).collect()
        }
    })
}

fn table(found: &Found) -> String {
    if found.records.is_empty() {
        return "no records\n".to_owned();
    }
    let shown = |component: &&Component| found.columns.is_empty() || found.columns.contains(&component.name);
    let mut columns: Vec<&Component> = found.fields().filter(shown).collect();
    columns.sort_by_key(|c| found.columns.iter().position(|name| *name == c.name));
    let mut rows = vec![columns.iter().map(|c| c.name.to_owned()).collect::<Vec<_>>()];
    rows.extend(
        found.records.iter().map(|record| columns.iter().map(|c| value(record, c).to_string()).collect()),
    );
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        let line = cells.collect::<Vec<_>>().join("  ");
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

/// What the SA can do.
pub(super) fn class_port_info(info: &ClassPortInfo, form: Form) -> Outcome<String> {
    let lines = [
        ("BaseVersion", Value::Number(info.base_version.into())),
        ("ClassVersion", Value::Number(info.class_version.into())),
        ("CapabilityMask", Value::Hex(info.capability_mask.get().into(), 4)),
        ("CapabilityMask2", Value::Hex(info.capability_mask2().into(), 7)),
        ("RespTimeValue", Value::Number(info.resp_time_value().into())),
        ("RedirectLID", Value::Number(info.redirect_lid.get().into())),
        ("RedirectQP", Value::Number(info.redirect_qp().into())),
        ("RedirectQ_Key", Value::Hex(info.redirect_qkey.get().into(), 8)),
        ("TrapLID", Value::Number(info.trap_lid.get().into())),
        ("TrapQ_Key", Value::Hex(info.trap_qkey.get().into(), 8)),
    ];
    Ok(match form {
        Form::Table => lines.iter().map(|(name, value)| format!("{name:<16}{value}\n")).collect(),
        Form::Json => {
            let object: Map<_, _> =
                lines.iter().map(|(name, value)| ((*name).to_owned(), value.to_json())).collect();
            format!("{}\n", serde_json::to_string_pretty(&object)?)
        }
        Form::Raw => format!("{}\n", Value::Bytes(info.as_bytes().to_vec())),
    })
}
