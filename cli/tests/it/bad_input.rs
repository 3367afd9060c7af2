//! "What bad input gets", as far as a host without InfiniBand can show it; the rest is in the peer tests.

use crate::rsm::rsm;

/// Usage errors are clap's: several lines, but the first says what and what is allowed, and the code is 2.
fn usage(args: &[&str], said: &str) {
    let refused = rsm(args);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert_eq!(refused.out, "");
    let first = refused.err.lines().next().expect("a line");
    assert!(first.contains(said), "{first}");
    assert!(!refused.err.contains("panicked"));
}

#[test]
fn values_that_cannot_be_meant_are_usage_errors() {
    usage(&["run", "--priority", "16"], "16 is not in 0..=15");
    usage(&["run", "--priority", "abc"], "'abc' for '--priority <0-15>'");
    usage(&["run", "--priority", "-1"], "-1");
    usage(&["run", "--guid", "0x12zz"], "GUID `0x12zz`: expected up to 16 hexadecimal digits");
    usage(&["run", "--guid", "0"], "0 is no GUID");
    usage(&["run", "--port", "0"], "0 is not in 1..=254");
    usage(&["run", "--log-level", "loud"], "'loud' for '--log-level <LEVEL>'");
    usage(&["discover", "--format", "xml"], "'xml' for '--format <FORMAT>'");
    usage(&["run", "--guid", "0x1", "--device", "mlx5_0"], "cannot be used with");
    usage(&["query", "lft", "--lid", "0"], "a LID is 1 to 49151");
    usage(&["query", "node", "--sm-key", "1g"], "a key is up to 16 hexadecimal digits");
    usage(&["query", "node", "--lid", "1", "--name", "H1"], "cannot be used with");
    usage(&["query", "mcast", "--mgid", "ff12"], "'ff12' for '--mgid <MGID>'");
    usage(&["query", "mcast", "--mlid", "0xbfff"], "a multicast LID is 0xc000 to 0xfffe");
    usage(&["query", "mcast", "--guid", "0x1", "--lid", "1"], "cannot be used with");
    usage(&["query", "service", "--lid", "1"], "unexpected argument '--lid'");
    usage(&["query", "nodes"], "unrecognized subcommand 'nodes'");
    usage(&["walk"], "unrecognized subcommand 'walk'");
    usage(&["run", "--onec"], "unexpected argument '--onec'");
}

#[test]
fn a_host_without_devices_says_so_and_what_to_do() {
    if std::path::Path::new("/sys/class/infiniband").exists() {
        return;
    }
    for args in [vec!["devices"], vec!["discover"], vec!["run", "--once"], vec!["plan"]] {
        let said = rsm(&args);
        assert!(
            said.refused(1).contains("no InfiniBand device on this host; load the adapter's driver"),
            "{said:?}"
        );
    }
    let none = rsm(&["devices", "--json"]);
    assert_eq!((none.code, none.out.as_str()), (Some(0), "[]\n"));
}

#[test]
fn an_unknown_engine_is_a_usage_error_that_lists_the_known_ones() {
    let said = rsm(&["run", "--once", "--engine", "minhop,magic"]);
    assert!(said.refused(2).contains("no routing engine is called `magic`; there are: minhop"), "{said:?}");
}

#[test]
fn no_fallback_stands_at_the_end_of_the_flag_too() {
    for engines in ["no_fallback", "no_fallback,minhop"] {
        let said = rsm(&["config", "show", "--engine", engines]);
        assert!(said.refused(2).ends_with("no_fallback stands at the end, after an engine"), "{said:?}");
    }
}
