use std::path::Path;

use mad::types::Guid;

use super::*;

fn parse(text: &str) -> Result<Config, ConfigError> {
    Config::parse(text, Path::new("rsm.toml"))
}

fn refusal(text: &str) -> String {
    parse(text).expect_err("must be refused").to_string()
}

#[test]
fn an_empty_file_is_the_defaults() {
    assert_eq!(parse("").expect("empty file"), Config::default());
    assert_eq!(parse("[sm]\n[ports]\n").expect("empty sections"), Config::default());
}

#[test]
fn what_show_prints_reads_back_to_the_same() {
    let mut config = Config::default();
    assert_eq!(parse(&config.to_commented_toml()).expect("defaults"), config);
    config.device.guid = Some(Guid(0x0002_c903_00a1_b2c1));
    assert_eq!(parse(&config.to_commented_toml()).expect("a GUID"), config);
    config.device.guid = None;
    config.device.name = Some("mlx5_0 \"odd\"".into());
    config.routing.engines = vec!["minhop".into(), "no_fallback".into()];
    config.routing.root_guids = vec![Guid(1), Guid(2)];
    config.log.file = Some("/var/log/rsm.log".into());
    config.sm.sm_key = Hex64(u64::MAX);
    assert_eq!(parse(&config.to_commented_toml()).expect("changed"), config);
}

#[test]
fn every_key_has_a_comment() {
    for key in sections::KEYS {
        assert!(!key.doc.is_empty(), "{}.{} has no comment", key.section, key.name);
    }
}

#[test]
fn an_unknown_key_is_named_with_its_place_and_the_known_ones() {
    let said = refusal("[sm]\npriority = 3\nprio = 4\n");
    assert!(said.starts_with("rsm.toml:3:1: unknown key `prio` in [sm]; its keys are: priority, "), "{said}");
    let said = refusal("[smm]\npriority = 3\n");
    assert!(
        said.starts_with("rsm.toml:1:2: unknown section or key `smm`; the sections are: device, sm"),
        "{said}"
    );
    let said = refusal("priority = 3\n");
    assert!(said.starts_with("rsm.toml:1:1: unknown section or key `priority`"), "{said}");
}

#[test]
fn a_wrong_type_says_what_is_allowed() {
    assert_eq!(
        refusal("[sm]\npriority = \"abc\"\n"),
        "rsm.toml:2:12: sm.priority: invalid type: string \"abc\"; allowed is an integer from 0 to 15"
    );
    let said = refusal("sm = 5\n");
    assert!(said.contains("it is a section: [sm]"), "{said}");
    let said = refusal("[routing]\nengines = \"minhop\"\n");
    assert!(said.starts_with("rsm.toml:2:11: routing.engines: ") && said.contains("a list of"), "{said}");
}

/// B69: every numeric key with values that other managers clamp or read as 0.
#[test]
fn numbers_that_cannot_be_meant_are_refused_for_every_numeric_key() {
    let mut tried = 0;
    for key in sections::KEYS {
        let setting::Allowed::Integer(low, high) = key.allowed else { continue };
        let below = (low - 1).to_string();
        let above = (high + 1).to_string();
        for bad in
            ["\"abc\"", "\"\"", "-1", "0x", "18446744073709551616", "1.5", "0x12zz", "true", &below, &above]
        {
            let text = format!("# comment\n[{}]\n{} = {bad}\n", key.section, key.name);
            let said = refusal(&text);
            assert!(said.starts_with("rsm.toml:3:"), "{text}: {said}");
            assert!(!said.contains('\n'), "{said}");
            tried += 1;
        }
        for good in [low, high] {
            let text = format!("[{}]\n{} = {good}\n", key.section, key.name);
            // per_destination at its top is refused for the window's sake, below it is not.
            if let Err(e) = parse(&text) {
                assert!(e.to_string().contains("transactions.window"), "{text}: {e}");
            }
        }
    }
    assert!(tried >= 150, "only {tried} values tried");
}

#[test]
fn a_guid_is_read_whole_or_not_at_all() {
    for bad in ["0x12zz", "", "0x", "0", "0x0", "0x12345678123456789", "-1"] {
        let said = refusal(&format!("[device]\nguid = \"{bad}\"\n"));
        assert!(said.starts_with("rsm.toml:2:8: device.guid = "), "{said}");
    }
    let said = refusal("[device]\nguid = 12\n");
    assert!(said.contains("allowed is a GUID as text"), "{said}");
    let config = parse("[device]\nguid = \"0002:c903:00a1:b2c1\"\n").expect("sysfs form");
    assert_eq!(config.device.guid, Some(Guid(0x0002_c903_00a1_b2c1)));
}

#[test]
fn an_unknown_engine_is_refused_with_the_known_ones() {
    let said = refusal("[routing]\nengines = [\"minhop\", \"magic\"]\n");
    assert!(said.starts_with("rsm.toml:2:11: routing.engines = [\"minhop\", \"magic\"]: "), "{said}");
    assert!(said.contains("a list of routing engines: minhop"), "{said}");
    let said = refusal("[routing]\nengines = []\n");
    assert!(said.starts_with("rsm.toml:2:11: "), "{said}");
}

/// The word that keeps minhop away stands at the end of a chain, and is none by itself.
#[test]
fn no_fallback_stands_at_the_end_of_engines() {
    for chain in [
        "[\"no_fallback\", \"minhop\"]",
        "[\"no_fallback\"]",
        "[\"minhop\", \"no_fallback\", \"no_fallback\"]",
    ] {
        let said = refusal(&format!("[routing]\nengines = {chain}\n"));
        assert!(said.starts_with(&format!("rsm.toml:2:11: routing.engines = {chain}: ")), "{said}");
        assert!(said.ends_with("no_fallback at its end, after an engine"), "{said}");
    }
    assert!(parse("[routing]\nengines = [\"ftree\", \"updn\", \"no_fallback\"]\n").is_ok());
}

#[test]
fn a_port_is_chosen_by_guid_or_by_name() {
    for other in ["name = \"mlx5_0\"", "port = 1"] {
        let said = refusal(&format!("[device]\n{other}\nguid = \"0x0002c90300a1b2c1\"\n"));
        assert_eq!(said, "rsm.toml:3:8: device.guid: stands instead of device.name and device.port");
    }
}

#[test]
fn keys_that_contradict_each_other_are_refused_where_they_stand() {
    let said = refusal("[transactions]\nwindow = 4\nper_destination = 5\n");
    assert_eq!(
        said,
        "rsm.toml:3:19: transactions.per_destination: 5 is more than transactions.window, which is 4"
    );
}

#[test]
fn broken_syntax_says_where() {
    let said = refusal("[sm]\npriority = = 3\n");
    assert!(said.starts_with("rsm.toml:2:"), "{said}");
    let said = refusal("[sm]\npriority = 1\npriority = 2\n");
    assert!(said.starts_with("rsm.toml:3:") && said.contains("`priority` is given twice"), "{said}");
}

#[test]
fn an_unreadable_file_is_named() {
    let said = Config::load(Path::new("/nonexistent/rsm.toml")).expect_err("missing").to_string();
    assert!(said.starts_with("/nonexistent/rsm.toml: "), "{said}");
}
