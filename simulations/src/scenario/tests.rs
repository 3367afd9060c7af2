use super::*;

#[test]
fn a_drawn_scenario_survives_its_own_file_and_the_seed_decides() {
    for seed in 0..50 {
        let scenario = random(seed);
        let text = toml::to_string(&scenario).unwrap();
        assert_eq!(Scenario::parse(&text).unwrap(), scenario, "seed {seed}:\n{text}");
        assert_eq!(random(seed), scenario);
        let with_clients = random_with_clients(seed);
        let text = toml::to_string(&with_clients).unwrap();
        assert_eq!(Scenario::parse(&text).unwrap(), with_clients, "seed {seed}:\n{text}");
        let with_managers = random_with_managers(seed);
        let text = toml::to_string(&with_managers).unwrap();
        assert_eq!(Scenario::parse(&text).unwrap(), with_managers, "seed {seed}:\n{text}");
        assert_eq!((with_clients.fabric, with_clients.network), (scenario.fabric, scenario.network));
        assert!(scenario.step.iter().all(|step| with_clients.step.contains(step)), "seed {seed}");
    }
    assert_ne!(random(1), random(2));
}

#[test]
fn mistakes_in_a_file_are_told_with_their_place() {
    const BASE: &str = "about = \"x\"\n[fabric]\nkind = \"line\"\nswitches = 2\nhosts = 1\n";
    let step = |text: &str| format!("{BASE}[[step]]\nat_ms = 1\n{text}\n");
    for (text, expected) in [
        ("about = 3".to_owned(), "1:9: invalid type"),
        ("about = \"x\"\n[fabric]\nkind = \"cube\"\n".to_owned(), "3:8: unknown variant `cube`"),
        (format!("colour = 1\n{BASE}"), "1:1: unknown field `colour`"),
        (format!("{BASE}depth = 1\n"), "2:1: unknown field `depth`"),
        (step("do = \"dance\""), "6:1: unknown variant `dance`"),
        (step("do = \"reset\"\nnode = \"S0\"\ncolour = 1"), "6:1: unknown field `colour`"),
        (step("do = \"reset\""), "6:1: missing field `node`"),
        (format!("{BASE}[expect]\nwithin = 1\n"), "7:1: unknown field `within`"),
        (format!("{BASE}[[manager]]\nnode = \"H0\"\npriority = 300\n"), "8:12: invalid value"),
        (format!("{BASE}[expect\n"), "6:8: "),
    ] {
        let error = Scenario::parse(&text).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}\n{text}");
        assert_eq!(error.lines().count(), 1);
    }
}

#[test]
fn steps_that_name_what_is_not_there_are_refused() {
    let base = "about = \"x\"\n[fabric]\nkind = \"line\"\nswitches = 2\nhosts = 1\n[[step]]\nat_ms = 5\n";
    for (step, expected) in [
        ("do = \"reset\"\nnode = \"S9\"\n", "step at 5 ms: no node is called `S9`"),
        ("do = \"unlink\"\nport = [\"S0\", 9]\n", "step at 5 ms: `S0` has no port 9: expected 1 to 2"),
        ("do = \"kill\"\nmanager = 1\n", "step at 5 ms: no manager 1: the file has 0, from 0"),
    ] {
        let scenario = Scenario::parse(&format!("{base}{step}")).unwrap();
        let error = run(&scenario, 1, &mut |_, _| unreachable!("there is no manager")).unwrap_err();
        assert_eq!(error, expected);
    }
}

#[test]
fn a_fabric_without_a_manager_is_found_wrong() {
    let text = "about = \"x\"\n[fabric]\nkind = \"line\"\nswitches = 2\nhosts = 1\n";
    let scenario = Scenario::parse(text).unwrap();
    let outcome = run(&scenario, 7, &mut |_, _| unreachable!("there is no manager")).unwrap();
    assert!(!outcome.is_right());
    assert!(outcome.to_string().starts_with("seed 7, wrong at 120.000000 s"), "{outcome}");
}
