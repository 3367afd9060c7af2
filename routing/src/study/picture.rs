//! A picture of load by link, as SVG: one panel for each set of tables, all on one scale.
//!
//! Switches stand in rows by their distance from the hosts; a fabric whose switches all have hosts is drawn as a ring. A
//! cable has the colour of its more loaded direction, and the load of both in its tooltip. Cost: linear in the cables.

use svg::Document;
use svg::node::element::{Circle, Group, Line, Rectangle, Text, Title};

use crate::engines::levels_from_hosts;
use crate::fabric::{SwitchGraph, SwitchIndex};

/// One panel.
#[derive(Clone, Copy, Debug)]
pub struct Panel<'a> {
    /// What stands above it.
    pub title: &'a str,
    /// Load of each arc of the graph.
    pub links: &'a [u64],
}

const WIDTH: f64 = 1000.0;
const MARGIN: f64 = 40.0;
const HEADING: f64 = 34.0;
const LEGEND: f64 = 44.0;

/// Draws `panels` one below the other, under a heading.
pub fn load_by_link(graph: &SwitchGraph, heading: &str, panels: &[Panel<'_>]) -> String {
    let places = places(graph);
    let panel_height = places.iter().map(|p| p.1).fold(0.0, f64::max) + 2.0 * MARGIN;
    let most = panels.iter().flat_map(|p| p.links).copied().max().unwrap_or(0);
    let height = HEADING + LEGEND + panels.len() as f64 * (panel_height + HEADING);
    let mut document = Document::new()
        .set("viewBox", (0, 0, WIDTH as u32, height.ceil() as u32))
        .set("font-family", "sans-serif")
        .set("font-size", 12)
        .add(Rectangle::new().set("width", "100%").set("height", "100%").set("fill", "white"))
        .add(Text::new(heading).set("x", MARGIN).set("y", 22).set("font-size", 15).set("font-weight", "bold"))
        .add(legend(most));
    let mut y = HEADING + LEGEND;
    for panel in panels {
        let title = Text::new(panel.title).set("x", MARGIN).set("y", y + 20.0).set("font-size", 14);
        let drawn =
            draw(graph, panel, &places, most).set("transform", format!("translate(0,{:.0})", y + HEADING));
        document = document.add(title).add(drawn);
        y += panel_height + HEADING;
    }
    document.to_string()
}

/// Where each switch stands within a panel.
fn places(graph: &SwitchGraph) -> Vec<(f64, f64)> {
    let level = levels_from_hosts(graph);
    let top = level.iter().copied().filter(|l| *l != u16::MAX).max().unwrap_or(0);
    let inner = WIDTH - 2.0 * MARGIN;
    if top == 0 {
        let count = graph.switch_count().max(1) as f64;
        let radius = inner / 3.0;
        let angle = |s: usize| s as f64 / count * std::f64::consts::TAU - std::f64::consts::FRAC_PI_2;
        return (0..graph.switch_count())
            .map(|s| (WIDTH / 2.0 + radius * angle(s).cos(), MARGIN + radius * (1.0 + angle(s).sin())))
            .collect();
    }
    // Switches that no host reaches stand at the top.
    let row = |s: usize| top - level[s].min(top);
    let mut in_row = vec![0_usize; usize::from(top) + 1];
    (0..graph.switch_count()).for_each(|s| in_row[usize::from(row(s))] += 1);
    let mut next = vec![0_usize; in_row.len()];
    let between_rows = 170.0;
    (0..graph.switch_count())
        .map(|s| {
            let r = usize::from(row(s));
            next[r] += 1;
            let step = inner / in_row[r] as f64;
            (MARGIN + step * (next[r] as f64 - 0.5), MARGIN + between_rows * r as f64)
        })
        .collect()
}

/// A cable: its two arcs.
struct Cable {
    a: SwitchIndex,
    b: SwitchIndex,
    ports: (u8, u8),
    there: u64,
    back: u64,
    /// Its number among those of the same two switches.
    run: usize,
}

fn cables(graph: &SwitchGraph, links: &[u64]) -> Vec<Cable> {
    let load = |s: SwitchIndex, port: u8| {
        let place = graph.arcs(s).iter().position(|arc| arc.out_port == port);
        place.and_then(|p| links.get(graph.offsets()[s as usize] as usize + p)).copied().unwrap_or(0)
    };
    let mut cables: Vec<Cable> = Vec::with_capacity(links.len() / 2);
    for a in 0..graph.switch_count() as u32 {
        for arc in graph.arcs(a).iter().filter(|arc| a < arc.to) {
            let run = cables.last().filter(|c| (c.a, c.b) == (a, arc.to)).map_or(0, |c| c.run + 1);
            cables.push(Cable {
                a,
                b: arc.to,
                ports: (arc.out_port, arc.in_port),
                there: load(a, arc.out_port),
                back: load(arc.to, arc.in_port),
                run,
            });
        }
    }
    cables
}

fn draw(graph: &SwitchGraph, panel: &Panel<'_>, places: &[(f64, f64)], most: u64) -> Group {
    let mut cables = cables(graph, panel.links);
    // The heaviest last, on top of the others.
    cables.sort_by_key(|c| c.there.max(c.back));
    let mut group = Group::new();
    for cable in &cables {
        let (from, to) = (places[cable.a as usize], places[cable.b as usize]);
        let length = (to.0 - from.0).hypot(to.1 - from.1).max(1.0);
        // Parallel cables lie beside one another.
        let aside = 3.0 * cable.run as f64;
        let (dx, dy) = ((to.1 - from.1) / length * aside, (from.0 - to.0) / length * aside);
        let share = share(cable.there.max(cable.back), most);
        let words = format!(
            "{} port {} to {} port {}: {}, back {}",
            graph.name(cable.a),
            cable.ports.0,
            graph.name(cable.b),
            cable.ports.1,
            cable.there,
            cable.back
        );
        let line = Line::new()
            .set("x1", tenth(from.0 + dx))
            .set("y1", tenth(from.1 + dy))
            .set("x2", tenth(to.0 + dx))
            .set("y2", tenth(to.1 + dy))
            .set("stroke", colour(share))
            .set("stroke-width", tenth(0.6 + 2.0 * share))
            .add(Title::new(words));
        group = group.add(line);
    }
    for (s, (x, y)) in (0..).zip(places) {
        let words = format!("{} {}", graph.name(s), graph.guid(s));
        group = group
            .add(Circle::new().set("cx", tenth(*x)).set("cy", tenth(*y)).set("r", 4).add(Title::new(words)));
    }
    group
}

/// The scale, from no load to the highest.
fn legend(most: u64) -> Group {
    let mut group = Group::new().set("transform", format!("translate({MARGIN},{HEADING})"));
    for step in 0..20 {
        let part = Rectangle::new()
            .set("x", step * 12)
            .set("y", 4)
            .set("width", 12)
            .set("height", 12)
            .set("fill", colour(f64::from(step) / 19.0));
        group = group.add(part);
    }
    let label = |x: u32, text: String| Text::new(text).set("x", x).set("y", 32);
    group.add(label(0, "0".into())).add(label(240, most.to_string()).set("text-anchor", "end"))
}

fn share(load: u64, most: u64) -> f64 {
    if most == 0 { 0.0 } else { load as f64 / most as f64 }
}

/// Light grey over yellow and orange to dark red.
fn colour(share: f64) -> String {
    const STOPS: [[f64; 3]; 4] =
        [[222.0, 222.0, 222.0], [250.0, 204.0, 70.0], [235.0, 110.0, 30.0], [140.0, 0.0, 20.0]];
    let place = share.clamp(0.0, 1.0) * (STOPS.len() - 1) as f64;
    let below = (place as usize).min(STOPS.len() - 2);
    let part = place - below as f64;
    let mix = |i: usize| (STOPS[below][i] + (STOPS[below + 1][i] - STOPS[below][i]) * part).round() as u8;
    format!("#{:02x}{:02x}{:02x}", mix(0), mix(1), mix(2))
}

fn tenth(value: f64) -> String {
    format!("{value:.1}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::testing;

    #[test]
    fn every_cable_and_switch_is_drawn_once_with_its_loads() {
        for fabric in [testing::fat_tree(&[2, 3], &[1, 2], 0), testing::torus(&[3, 3], 1, 0)] {
            let graph = SwitchGraph::new(&fabric);
            let links: Vec<u64> = (0..graph.all_arcs().len() as u64).collect();
            let panel = Panel { title: "a <b>", links: &links };
            let text = load_by_link(&graph, "loads & more", &[panel, panel]);
            let cables = graph.all_arcs().len() / 2;
            assert_eq!(text.matches("<line").count(), 2 * cables);
            assert_eq!(text.matches("<circle").count(), 2 * graph.switch_count());
            assert!(text.contains("a &lt;b&gt;") && text.contains("loads &amp; more"), "{text}");
            let first = &graph.arcs(0)[0];
            let back = graph.arcs(first.to).iter().position(|a| a.out_port == first.in_port).unwrap();
            let back = graph.offsets()[first.to as usize] as usize + back;
            let to = graph.name(first.to);
            let words = format!("S1 port {} to {to} port {}: 0, back {back}", first.out_port, first.in_port);
            assert!(text.contains(&words), "{words}");
            assert!(text.contains(&colour(1.0)), "the highest load has the last colour");
        }
    }

    #[test]
    fn a_fabric_without_switches_or_traffic_is_drawn_too() {
        let graph = SwitchGraph::new(&crate::fabric::Fabric::new());
        assert!(load_by_link(&graph, "", &[Panel { title: "", links: &[] }]).starts_with("<svg"));
    }
}
