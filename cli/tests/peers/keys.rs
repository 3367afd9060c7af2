//! Stock tools on a fabric that rsm has locked with M_Keys. On the emulator alone: ibsim's devices keep no keys.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::emulator::Emulator;
use crate::harness::Harness;
use crate::net::Net;
use crate::program::{Running, Said};

const KEY: &str = "0x1234567890abcdef";

/// `rsm run --once` with this configuration, and this state.
fn once(emulator: &Emulator, config: &str, state: &str) -> Said {
    let mut command = emulator.command("H0", env!("CARGO_BIN_EXE_rsm"));
    let folder = command.get_current_dir().expect("a folder of its own").to_path_buf();
    let file = folder.join("rsm.toml");
    fs::write(&file, format!("{config}[transactions]\ntimeout_ms = 50\nretries = 1\n"))
        .expect("configuration");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("mode");
    let state = emulator.folder().join(state);
    command.args(["run", "--once", "--json", "--config", "rsm.toml", "--state-dir"]).arg(state);
    let said = Running::start(command).finish();
    for text in [&said.out, &said.err] {
        assert!(
            !text.contains("1234567890abcdef") && !text.contains("1311768467294899695"),
            "a key is told: {text}"
        );
    }
    said
}

fn report(said: Said) -> serde_json::Value {
    serde_json::from_str(&said.ok()).expect("JSON")
}

/// All with the keys, by configuration or from a manager's state; without, one line says why nothing is seen.
fn discover_shows_what_it_has_the_keys_for(emulator: &Emulator, config: &str) {
    let file = emulator.folder().join("keys.toml");
    fs::write(&file, config).expect("configuration");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("mode");
    let discover = |flag: &str, path: &std::path::Path| {
        let mut command = emulator.command("H0", env!("CARGO_BIN_EXE_rsm"));
        command.arg("discover");
        if !flag.is_empty() {
            command.arg(flag).arg(path);
        }
        Running::start(command).finish()
    };
    for (flag, path) in [("--config", file), ("--state-dir", emulator.folder().join("state"))] {
        let said = discover(flag, &path);
        assert!(
            said.out.matches("\nCa\t").count() == 4 && said.out.matches("\nSwitch\t").count() == 2,
            "{said:?}"
        );
        assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
        assert!(!said.out.contains("1234567890abcdef"), "{said:?}");
    }
    let said = discover("", std::path::Path::new(""));
    assert_eq!((said.code, said.err.lines().count()), (Some(1), 1), "{said:?}");
    assert!(said.err.contains("locked with an M_Key") && said.err.contains("--config"), "{said:?}");
}

#[test]
fn b64_a_locked_fabric_answers_stock_tools_with_the_key_alone_and_opens_when_keys_are_given_up() {
    let emulator = Emulator::start(Net::own("two-switches.net"));
    let config = format!("[m_key]\nkey = \"{KEY}\"\nprotect = 2\n");
    let first = report(once(&emulator, &config, "state"));
    assert_eq!(first["failures"], serde_json::json!([]), "{first}");
    // The switch at H0's cable, H0 itself, and the host beyond.
    for (route, port) in [("0,1", "0"), ("0", "1"), ("0,1,2", "1")] {
        let ask = |flags: &[&str]| {
            emulator.run("H0", "smpquery", &[flags, &["-D", "portinfo", route, port]].concat())
        };
        let without = ask(&["-t", "100"]);
        assert_ne!(without.code, Some(0), "{without:?}");
        let with = ask(&["-K", "-y", KEY]).ok();
        let field = |name: &str, value: &str| {
            with.lines()
                .any(|line| line.starts_with(&format!("{name}:.")) && line.ends_with(&format!(".{value}")))
        };
        assert!(field("Mkey", KEY) && field("ProtectBits", "2"), "{route}: {with}");
    }
    // Known from the state, or from the configuration alone: nothing is set.
    for state in ["state", "nothing"] {
        let again = report(once(&emulator, &config, state));
        assert_eq!(
            (&again["sets"], &again["lids_new"]),
            (&serde_json::json!({}), &0.into()),
            "{state}: {again}"
        );
    }
    discover_shows_what_it_has_the_keys_for(&emulator, &config);
    let stranger = once(&emulator, "[m_key]\nkey = \"0x99\"\nprotect = 2\n", "stranger");
    assert_eq!(stranger.code, Some(1), "{stranger:?}");
    assert!(stranger.out.contains("our own port does not answer"), "{stranger:?}");
    let open = report(once(&emulator, "", "state"));
    assert_eq!(open["sets"], serde_json::json!({ "PortInfo": 6 }), "{open}");
    let said = emulator.run("H0", "smpquery", &["-D", "portinfo", "0,1", "0"]).ok();
    assert!(said.lines().any(|line| line.starts_with("ProtectBits:.") && line.ends_with(".0")), "{said}");
}
