//! Files that a running `rsm` keeps for other programs: metrics and Slurm's topology.

use crate::harness::{Harness, on_both};
use crate::net::Net;
use crate::program::wait_until;

on_both!(b78_b80_metrics_and_topology_are_there_for_other_programs, a_file_that_can_not_be_written_is_named);

/// The value of a series, by its beginning.
fn value(text: &str, series: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok())
}

/// Every port has its series; answers are counted by attribute; a cable that goes shows in both files, and nothing else
/// changes the topology.
fn b78_b80_metrics_and_topology_are_there_for_other_programs<H: Harness>() {
    let sim = H::start(Net::own("two-switches.net"));
    let (config, metrics, topology) =
        (sim.folder().join("rsm.toml"), sim.folder().join("rsm.prom"), sim.folder().join("topology.conf"));
    let text = format!(
        "[sm]\nsweep_interval_s = 1\n[files]\nmetrics = {metrics:?}\nmetrics_interval_s = 1\nslurm_topology = {topology:?}\n"
    );
    std::fs::write(&config, text).expect("configuration");
    let read = |path: &std::path::Path| std::fs::read_to_string(path).unwrap_or_default();
    let is = |series: &str, expected: f64| value(&read(&metrics), series) == Some(expected);
    let rsm = crate::fabric::bring_up(&sim, "H0", &["--config", config.to_str().expect("text")]);
    wait_until("the metrics say that it is master", || is("rsm_role{role=\"master\"}", 1.0));
    wait_until("nothing is left open", || is("rsm_failures", 0.0) && is("rsm_switches", 2.0));
    sim.run("H1", "saquery", &["-p"]).ok();
    let answered = |attribute: &str| format!("rsm_sa_answered_total{{attribute=\"{attribute}\"}}");
    wait_until("the query is counted", || {
        value(&read(&metrics), &answered("PathRecord")).is_some_and(|count| count > 0.0)
    });
    assert!(is(&answered("MultiPathRecord"), 0.0), "what nobody asked for is there at zero");
    wait_until("the topology is there", || topology.exists());
    let before = read(&topology);
    assert!(
        before.contains("SwitchName=S1 Nodes=H[1,3]\n") && before.contains("Switches=S[0-1]"),
        "{before}"
    );

    let down =
        |text: &str| text.lines().filter(|l| l.starts_with("rsm_port_up{") && l.ends_with(" 0")).count();
    let (ports, were_down) = (read(&metrics).matches("rsm_port_up{").count(), down(&read(&metrics)));
    sim.console("Unlink \"H1\"[1]");
    wait_until("the host is gone from the topology", || read(&topology).contains("SwitchName=S1 Nodes=H3\n"));
    wait_until("its port is down in the metrics", || down(&read(&metrics)) > were_down);
    assert!(
        read(&metrics).matches("rsm_port_up{").count() >= ports - 1,
        "a port that is down keeps its series"
    );
    sim.console("ReLink \"H1\"[1]");
    wait_until("all is as before", || read(&topology) == before);
    let ended = rsm.stop();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(!read(&metrics).is_empty(), "the last metrics stay");
}

fn a_file_that_can_not_be_written_is_named<H: Harness>() {
    let sim = H::start(Net::own("two-switches.net"));
    let config = sim.folder().join("rsm.toml");
    for key in ["metrics", "slurm_topology"] {
        std::fs::write(&config, format!("[files]\n{key} = \"/nowhere/at-all\"\n")).expect("configuration");
        let said = sim.rsm("H0", &["run", "--once", "--config", config.to_str().expect("text")]);
        assert_eq!(said.code, Some(1), "{said:?}");
        assert!(said.err.contains("/nowhere/at-all"), "{}", said.err);
    }
}
