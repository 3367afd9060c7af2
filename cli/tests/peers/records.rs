//! Subnet administration of rsm beside that of opensm, record by record: saquery asks both, one after the other, on the same
//! fabric, untrusted and with the SM_Key. LIDs are the same, since rsm adopts those that the ports hold. What differs is
//! listed in [`FIELDS`] and [`ONE_SIDED`], each with its reason; one that does not occur any more fails too, unless it says that it
//! occurs sometimes.

use std::collections::{BTreeMap, BTreeSet};

use crate::emulator::Emulator;
use crate::fabric::bring_up;
use crate::harness::Harness;
use crate::net::Net;

/// Queries, and how many lines of a record say which it is; 0: the whole output is compared.
const QUERIES: [(&str, usize); 23] = [
    ("CPI", 0),
    ("NR", 1),
    ("NR 2", 1),
    ("PIR", 3),
    ("PIR 2/1", 3),
    ("SWIR", 2),
    ("LR", 4),
    ("LR 2/3 3/3", 4),
    ("LFTR", 2),
    ("LFTR 2/0", 2),
    ("MFTR", 3),
    ("SL2VL", 3),
    ("VLAR", 3),
    ("VLAR 1/1/1", 3),
    ("PKTR", 3),
    ("SMIR", 2),
    ("GIR", 2),
    ("PR", 5),
    ("PR --slid 2 --dlid 3", 5),
    ("-g", 1),
    ("MCMR", 2),
    ("-D", 0),
    ("-s", 0),
];
/// Tables that are empty on a fabric on which nobody registered anything.
const EMPTY: [&str; 3] = ["MFTR", "SR", "IIR"];

/// A field that may differ.
struct Field {
    query: &'static str,
    name: &'static str,
    /// What begins of the record's own lines, its value with opensm and with us.
    fits: fn(&[String], &str, &str) -> bool,
    /// Who is right, and why.
    why: &'static str,
}

const FIELDS: &[Field] = &[
    Field {
        query: "CPI",
        name: "Capability mask",
        fits: |_, theirs, ours| (theirs, ours) == ("0x2602", "0x2600"),
        why: "opensm claims Get and Set of Notice (bit 1), which neither serves",
    },
    Field {
        query: "CPI",
        name: "Capability mask 2",
        fits: |_, theirs, ours| (theirs, ours) == ("0x0000B5E8", "0x000014E0"),
        why: "only opensm has MulticastFDBTop, services of groups, HDR and 2x widths by their bits",
    },
    Field {
        query: "PIR",
        name: "",
        fits: |key, _, _| {
            ["6", "7", "8"].iter().any(|port| key[2] == format!("PortNum.................{port}"))
        },
        why: "of a port without a cable opensm keeps nothing but its state; we show what the port says",
    },
    Field {
        query: "PIR",
        name: "PartEnforce",
        fits: |_, theirs, ours| (theirs, ours) == ("1", "0"),
        why: "a decision: opensm has switches check P_Keys where all may talk to all, we only where some may not",
    },
    Field {
        query: "SWIR",
        name: "LifeTimeValue/PortStateChange/OpSL2VL",
        fits: |_, theirs, ours| (theirs, ours) == ("0x94", "0x90"),
        why: "sometimes: PortStateChange has been cleared; opensm shows it as it was before",
    },
    Field {
        query: "SWIR",
        name: "MulticastFDBTop",
        fits: |_, theirs, ours| (theirs, ours) == ("0x0", ""),
        why: "saquery prints it only when ClassPortInfo says that MulticastFDBTop is used, which we don't",
    },
    Field {
        query: "LFTR",
        name: "",
        fits: |_, theirs, ours| [theirs, ours].iter().all(|port| ["3", "4", "5"].contains(port)),
        why: "a decision: which of the three cables between the switches a destination takes",
    },
    Field {
        query: "SL2VL",
        name: "VL",
        fits: |_, theirs, _| theirs.split('|').all(|lane| ["0", ""].contains(&lane.trim())),
        why: "without its QoS opensm does not read these tables and shows zeros; ours are what the ports hold",
    },
    Field { query: "SMIR", name: "ActCount", fits: |_, _, _| true, why: "a counter of what the manager did" },
    Field {
        query: "SMIR trusted",
        name: "SM_Key",
        fits: |_, theirs, ours| (theirs, ours) == ("0x0000000000000000", "0x0000000000000001"),
        why: "who knows the SM_Key may see it; opensm hides it from everybody",
    },
    Field {
        query: "PR",
        name: "rate",
        fits: |_, theirs, ours| (theirs, ours) == ("0x87", "0x90"),
        why: "a path that ends in a switch: the link fields of its base port 0 have no meaning; opensm reads 40 Gb/s of them",
    },
];

/// Records that only one of them has.
struct OneSided {
    query: &'static str,
    opensm_has_it: bool,
    fits: fn(&[String]) -> bool,
    /// Who is right, and why.
    why: &'static str,
}

const ONE_SIDED: &[OneSided] = &[
    OneSided {
        query: "-g trusted",
        opensm_has_it: false,
        fits: |_| true,
        why: "a group without members: opensm shows those who know the SM_Key members only",
    },
    OneSided { query: "MCMR trusted", opensm_has_it: false, fits: |_| true, why: "the same" },
];

/// Records by what says which they are; the other lines by name and by how manieth of that name they are.
type Records = BTreeMap<Vec<String>, BTreeMap<(String, usize), String>>;

fn records(said: &str, key: usize) -> Records {
    let mut records = Records::new();
    let mut lines = said.lines().map(str::trim).filter(|line| !line.is_empty()).peekable();
    while let Some(line) = lines.next() {
        if !line.to_lowercase().ends_with("dump:") {
            continue;
        }
        let mut own: Vec<String> = Vec::new();
        let begins = |line: &&str| {
            let line = line.to_lowercase();
            line.ends_with("record dump:") || line.ends_with("record group dump:")
        };
        while let Some(line) = lines.next_if(|line| !begins(line)) {
            // saquery prints the P_Key table's block without turning its bytes, and opensm sends it unturned (B42).
            own.push(line.replace("Block......................256", "Block......................1"));
        }
        let rest = own.split_off(key.min(own.len()));
        let mut fields = BTreeMap::new();
        for line in rest {
            let end = line.find(['.', ':', '\t']).unwrap_or(line.len());
            let (name, value) = line.split_at(end);
            let nth =
                (0..).find(|nth| !fields.contains_key(&(name.to_owned(), *nth))).expect("a free number");
            fields.insert((name.to_owned(), nth), value.trim_start_matches(['.', ':', '\t', ' ']).to_owned());
        }
        assert!(records.insert(own.clone(), fields).is_none(), "twice: {own:?} in\n{said}");
    }
    records
}

/// What saquery says to each query, untrusted and trusted.
fn ask_all(emulator: &Emulator) -> BTreeMap<String, Records> {
    let mut all = BTreeMap::new();
    for (query, key) in QUERIES {
        for (suffix, trust) in [("", &[][..]), (" trusted", &["--smkey", "1"])] {
            let args: Vec<&str> = trust.iter().copied().chain(query.split(' ')).collect();
            let said = emulator.run("H1", "saquery", &args);
            let found = if key > 0 {
                records(&said.out, key)
            } else {
                let lines = said.out.lines().filter_map(|line| line.trim().split_once(".."));
                let fields =
                    lines.map(|(name, value)| ((name.to_owned(), 0), value.trim_matches('.').to_owned()));
                let rest = said.out.lines().filter(|line| !line.contains(".."));
                let rest = rest.enumerate().map(|(nth, line)| (("line".to_owned(), nth), line.to_owned()));
                Records::from([(Vec::new(), fields.chain(rest).collect())])
            };
            all.insert(format!("{query}{suffix}"), found);
        }
    }
    for query in EMPTY {
        let said = emulator.run("H1", "saquery", &[query]).ok();
        assert!(!said.contains("dump"), "{said}");
    }
    all
}

/// Whether a rule for `rule` counts for `query`: for all of its forms, or for the trusted one.
fn counts(rule: &str, query: &str) -> bool {
    let (rule, only_trusted) = rule.strip_suffix(" trusted").map_or((rule, false), |rule| (rule, true));
    (query == rule || query.starts_with(&format!("{rule} ")))
        && (!only_trusted || query.ends_with(" trusted"))
}

#[test]
fn saquery_gets_the_same_records_as_from_opensm() {
    let emulator = Emulator::start(Net::own("two-switches.net"));
    let opensm = emulator.opensm("H0", &[]);
    opensm.wait_until_up(&emulator);
    let theirs = ask_all(&emulator);
    opensm.end();
    let _running = bring_up(&emulator, "H0", &[]);
    let ours = ask_all(&emulator);

    let (mut used, mut wrong) = (BTreeSet::new(), Vec::new());
    let mut compared = 0;
    for (query, theirs) in &theirs {
        let ours = &ours[query];
        let only = |of: &Records, other: &Records| {
            of.keys().filter(|key| !other.contains_key(*key)).cloned().collect::<Vec<_>>()
        };
        for (opensm_has_it, keys) in [(true, only(theirs, ours)), (false, only(ours, theirs))] {
            for key in keys {
                let mut rules = ONE_SIDED.iter().filter(|r| counts(r.query, query));
                match rules.find(|r| r.opensm_has_it == opensm_has_it && (r.fits)(&key)) {
                    Some(rule) => drop(used.insert((rule.query, rule.why))),
                    None => {
                        wrong.push(format!("{query}: only one has it (opensm: {opensm_has_it}): {key:?}"))
                    }
                }
            }
        }
        for (key, their_fields) in theirs {
            let Some(our_fields) = ours.get(key) else { continue };
            let names: BTreeSet<_> = their_fields.keys().chain(our_fields.keys()).collect();
            for name in names {
                let value =
                    |of: &BTreeMap<(String, usize), String>| of.get(name).cloned().unwrap_or_default();
                let (a, b) = (value(their_fields), value(our_fields));
                compared += 1;
                if a == b {
                    continue;
                }
                let mut rules =
                    FIELDS.iter().filter(|r| counts(r.query, query) && name.0.starts_with(r.name));
                match rules.find(|r| (r.fits)(key, &a, &b)) {
                    Some(rule) => drop(used.insert((rule.query, rule.why))),
                    None => wrong.push(format!("{query}: {key:?}: {name:?}: opensm {a:?}, rsm {b:?}")),
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} differences without a reason:\n{}", wrong.len(), wrong.join("\n"));
    assert!(compared > 5_000, "{compared} fields");
    let rules = FIELDS.iter().map(|r| (r.query, r.why)).chain(ONE_SIDED.iter().map(|r| (r.query, r.why)));
    let unused: Vec<_> =
        rules.filter(|rule| !used.contains(rule) && !rule.1.starts_with("sometimes")).collect();
    assert!(unused.is_empty(), "these do not occur: {unused:#?}");
}
