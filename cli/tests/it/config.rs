use crate::rsm::rsm;

fn file(text: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("rsm.toml");
    std::fs::write(&path, text).expect("file");
    let path = path.to_str().expect("text").to_owned();
    (folder, path)
}

#[test]
fn show_prints_a_file_that_check_accepts_and_show_repeats() {
    let shown = rsm(&["config", "show"]);
    assert_eq!(shown.code, Some(0));
    assert!(shown.out.contains("\n[sm]\n") && shown.out.contains("\npriority = 0\n"), "{}", shown.out);
    let (_folder, path) = file(&shown.out);
    let checked = rsm(&["config", "check", &path]);
    assert_eq!((checked.code, checked.out.as_str()), (Some(0), format!("{path}: no errors\n").as_str()));
    assert_eq!(rsm(&["config", "show", "--config", &path]).out, shown.out);
}

#[test]
fn flags_win_over_the_file() {
    let (_folder, path) = file(
        "[sm]\npriority = 3\n[device]\nname = \"mlx5_0\"\nport = 2\n[routing]\nengines = [\"minhop\"]\n\
         [state]\ndir = \"/a\"\n[log]\nlevel = \"error\"\n",
    );
    let shown = rsm(&[
        "config",
        "show",
        "--config",
        &path,
        "--priority",
        "7",
        "--guid",
        "0x0002c90300a1b2c1",
        "--engine",
        "minhop,no_fallback",
        "--state-dir",
        "/b",
        "--log-level",
        "debug",
    ]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    for line in [
        "priority = 7",
        "guid = \"0x0002c90300a1b2c1\"",
        "# name is not set",
        "# port is not set",
        "engines = [\"minhop\", \"no_fallback\"]",
        "dir = \"/b\"",
        "level = \"debug\"",
    ] {
        assert!(shown.out.lines().any(|l| l == line), "{line} is missing:\n{}", shown.out);
    }
}

#[test]
fn a_wrong_file_is_named_with_line_and_column_by_every_command_that_reads_it() {
    let (_folder, path) = file("[sm]\npriority = \"abc\"\n");
    let line = format!(
        "rsm: {path}:2:12: sm.priority: invalid type: string \"abc\"; allowed is an integer from 0 to 15"
    );
    assert_eq!(rsm(&["config", "check", &path]).refused(2), line);
    for command in [vec!["config", "show"], vec!["run", "--once"], vec!["plan"]] {
        let args = [command, vec!["--config", &path]].concat();
        assert_eq!(rsm(&args).refused(2), line);
    }
}

#[test]
fn an_unknown_key_is_refused() {
    let (_folder, path) = file("[sm]\nprio = 3\n");
    let said = rsm(&["config", "check", &path]);
    assert!(
        said.refused(2).contains(":2:1: unknown key `prio` in [sm]; its keys are: priority, "),
        "{said:?}"
    );
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let said = rsm(&["run", "--config", "/nonexistent/rsm.toml"]);
    assert!(said.refused(1).starts_with("rsm: /nonexistent/rsm.toml: No such file"), "{said:?}");
}

#[test]
fn check_of_a_file_that_cannot_be_read_is_refused() {
    let (folder, _) = file("");
    let folder = folder.path().to_str().expect("text");
    for (path, said) in [("/nonexistent/rsm.toml", "No such file"), (folder, "Is a directory")] {
        let checked = rsm(&["config", "check", path]);
        assert!(checked.refused(2).starts_with(&format!("rsm: {path}: {said}")), "{checked:?}");
    }
}

#[test]
fn a_file_that_a_key_names_and_is_not_there_is_told_with_the_key() {
    for (section, key) in [
        ("routing", "root_guid_file"),
        ("routing", "load_file"),
        ("partitions", "file"),
        ("qos", "opensm_file"),
        ("m_key", "file"),
    ] {
        let (_folder, path) = file(&format!("[{section}]\n{key} = \"/nonexistent/list\"\n"));
        let said = rsm(&["config", "check", &path]);
        let expected = format!("rsm: {path}: {section}.{key}: /nonexistent/list: No such file");
        assert!(said.refused(2).starts_with(&expected), "{said:?}");
    }
}

#[test]
fn a_file_that_is_no_text_is_refused_with_line_and_byte() {
    let (_folder, path) = file("");
    std::fs::write(&path, b"[sm]\n# \xe4\npriority = 3\n").expect("file");
    let said = rsm(&["config", "check", &path]);
    assert_eq!(said.refused(2), format!("rsm: {path}:2:3: byte 8 of the file, 0xe4, is no UTF-8 text"));
}
