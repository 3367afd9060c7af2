//! The options of quality of service in opensm's options file (opensm.conf): lines of a key and a value, `#` begins a
//! comment, `(null)` is not set. Keys that do not begin with `qos` are others' business and are not looked at.

use super::{Options, PortKind, Values, VlMap, VlWeights};

/// What is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {message}")]
pub struct OptionsError {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What it is and what is allowed.
    pub message: String,
}

/// Reads the text of a file.
///
/// # Errors
/// The first value that can't be meant, and a key of quality of service that opensm does not know.
pub fn read(text: &str) -> Result<Options, OptionsError> {
    let mut options = Options::default();
    for (number, line) in (1..).zip(text.lines()) {
        let said = line.split('#').next().unwrap_or("");
        let Some(key) = said.split_whitespace().next().filter(|key| key.starts_with("qos")) else { continue };
        let value = said.trim().strip_prefix(key).unwrap_or("").trim();
        let place = |part: &str| line[..part.as_ptr() as usize - line.as_ptr() as usize].chars().count() + 1;
        let error = |part: &str, message| OptionsError { line: number, column: place(part), message };
        let refused = |allowed: &str| error(value, format!("{key} {value}: allowed is {allowed}"));
        let unset = value.is_empty() || value.eq_ignore_ascii_case("(null)");
        if key == "qos_policy_file" {
            continue;
        }
        if key == "qos" {
            options.enabled = truth(value).ok_or_else(|| refused("TRUE or FALSE"))?;
            continue;
        }
        let Some((values, name)) = split(key, &mut options) else {
            return Err(error(key, format!("{key}: opensm has no such option of quality of service")));
        };
        if !unset {
            set(values, name, value).map_err(refused)?;
        }
    }
    Ok(options)
}

/// Whose value a key is, and which.
fn split<'a>(key: &'a str, options: &'a mut Options) -> Option<(&'a mut Values, &'a str)> {
    const NAMES: [&str; 5] = ["max_vls", "high_limit", "vlarb_high", "vlarb_low", "sl2vl"];
    let rest = key.strip_prefix("qos_")?;
    if NAMES.contains(&rest) {
        return Some((&mut options.general, rest));
    }
    let (kind, name) = rest.split_once('_')?;
    let kind = PortKind::ALL.into_iter().find(|known| known.name() == kind)?;
    NAMES.contains(&name).then(|| (&mut options.kinds[kind as usize], name))
}

fn set(values: &mut Values, name: &str, value: &str) -> Result<(), &'static str> {
    match name {
        "max_vls" => {
            let vls: Option<u8> = value.parse().ok().filter(|vls| *vls <= 15);
            values.max_vls = vls.map(Some).ok_or("0 to 15, 0 for all")?.filter(|vls| *vls > 0);
        }
        "high_limit" => {
            let limit: Option<i16> = value.parse().ok().filter(|limit| (-1..=255).contains(limit));
            values.high_limit = u8::try_from(limit.ok_or("-1 to 255, -1 for what is built in")?).ok();
        }
        "vlarb_high" => values.high = Some(value.parse::<VlWeights>()?),
        "vlarb_low" => values.low = Some(value.parse::<VlWeights>()?),
        _ => values.sl_to_vl = Some(value.parse::<VlMap>()?),
    }
    Ok(())
}

/// opensm's truth values.
fn truth(value: &str) -> Option<bool> {
    match value.to_ascii_lowercase().as_str() {
        "true" | "yes" | "1" => Some(true),
        "false" | "no" | "0" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `opensm -c` writes, and then values for two kinds.
    #[test]
    fn opensms_file_is_read() {
        let written = "# QoS OPTIONS\n#\n# Enable QoS setup\nqos FALSE\nqos_policy_file /etc/opensm/qos-policy.conf\n\
            sweep_interval 10\nqos_max_vls 0\nqos_high_limit -1\nqos_vlarb_high (null)\nqos_vlarb_low (null)\n\
            qos_sl2vl (null)\nqos_ca_max_vls 0\nqos_sw0_high_limit -1\nqos_rtr_sl2vl (null)\n";
        assert_eq!(read(written).unwrap(), Options::default());
        let set = "qos TRUE\nqos_max_vls 8\nqos_high_limit 6 # in 4 KiB\nqos_swe_vlarb_low 0:1,1:2\r\n\
            qos_ca_sl2vl 0,0,0,0,0,0,0,0,1,1,1,1,1,1,1,1\n";
        let options = read(set).unwrap();
        assert!(options.enabled);
        assert_eq!((options.general.max_vls, options.general.high_limit), (Some(8), Some(6)));
        let of = |kind: PortKind| &options.kinds[kind as usize];
        assert_eq!(of(PortKind::SwitchExternal).low, Some(VlWeights(vec![(0, 1), (1, 2)])));
        assert_eq!(of(PortKind::Ca).sl_to_vl.unwrap().0[7..9], [0, 1]);
    }

    /// B56: every value is checked on every way in.
    #[test]
    fn b56_what_is_wrong_is_named_with_its_place() {
        let text = |text: &str| read(text).unwrap_err().to_string();
        assert_eq!(text("qos maybe\n"), "1:5: qos maybe: allowed is TRUE or FALSE");
        assert_eq!(text("\n qos_max_vls 16\n"), "2:14: qos_max_vls 16: allowed is 0 to 15, 0 for all");
        assert!(text("qos_high_limit 256\n").starts_with("1:16: qos_high_limit 256: allowed is -1 to 255"));
        assert!(text("qos_ca_vlarb_low 0-4\n").contains("allowed is up to 64 pairs"));
        assert!(text("qos_swe_sl2vl 1,2\n").contains("allowed is 16 VLs"));
        assert_eq!(
            text("qos_hca_sl2vl 1\n"),
            "1:1: qos_hca_sl2vl: opensm has no such option of quality of service"
        );
    }
}
