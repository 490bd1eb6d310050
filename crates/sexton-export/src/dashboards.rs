//! Dashboards for Grafana: one of a node, with a panel for every metric of the facts, and one of
//! the fleet. They are printed from the definitions, so that a new metric is on them.

use serde_json::{Value, json};
use sexton_model::fact::metric::Metric;
use sexton_model::fact::{self, Area, Fact, Measure};

/// Series that one panel shows.
const TOP: u32 = 10;

/// Columns of Grafana's grid.
const COLUMNS: usize = 24;

/// Dashboards, each with the name of its file.
pub fn all() -> [(&'static str, Value); 2] {
    [("sexton-node.json", node()), ("sexton-fleet.json", fleet())]
}

/// The queries of a dashboard, with its variables filled in.
pub fn queries(dashboard: &Value) -> Vec<String> {
    let panels = dashboard["panels"].as_array().into_iter().flatten();
    let inner = panels
        .clone()
        .filter_map(|row| row["panels"].as_array())
        .flatten();
    let targets = panels
        .clone()
        .chain(inner)
        .filter_map(|it| it["targets"].as_array());
    let queries = targets
        .flatten()
        .filter_map(|target| target["expr"].as_str());
    queries
        .map(|query| query.replace("$instance", "node-1:8642"))
        .collect()
}

/// How a panel draws.
#[derive(Debug, Clone, Copy)]
enum Draw {
    Lines,
    Stat,
    Table,
}

/// A panel before it has a place.
#[derive(Debug)]
struct Panel {
    title: String,
    about: String,
    draw: Draw,
    unit: &'static str,
    query: String,
    legend: String,
    width: usize,
}

/// Gives panels their ids and places, from left to right.
#[derive(Debug, Default)]
struct Grid {
    panels: Vec<Value>,
    id: usize,
    x: usize,
    y: usize,
}

const HEIGHT: usize = 8;

impl Grid {
    fn add(&mut self, panel: Panel) {
        if self.x + panel.width > COLUMNS {
            (self.x, self.y) = (0, self.y + HEIGHT);
        }
        self.id += 1;
        let value = panel.value(self.id, self.x, self.y);
        self.x += panel.width;
        self.panels.push(value);
    }

    /// A row that is opened by a click; its panels are read only then.
    fn add_row(&mut self, title: &str, panels: Vec<Panel>) {
        if self.x > 0 {
            (self.x, self.y) = (0, self.y + HEIGHT);
        }
        self.id += 1;
        let id = self.id;
        let mut inner = Grid {
            id,
            y: self.y + 1,
            ..Grid::default()
        };
        panels.into_iter().for_each(|panel| inner.add(panel));
        self.id = inner.id;
        self.panels.push(json!({
            "type": "row", "id": id, "title": title, "collapsed": true,
            "gridPos": {"h": 1, "w": COLUMNS, "x": 0, "y": self.y},
            "panels": inner.panels,
        }));
        self.y += 1;
    }
}

impl Panel {
    fn value(&self, id: usize, x: usize, y: usize) -> Value {
        let (kind, options) = match self.draw {
            Draw::Lines => (
                "timeseries",
                json!({
                    "legend": {"displayMode": "list", "placement": "bottom", "showLegend": true, "calcs": []},
                    "tooltip": {"mode": "multi", "sort": "desc"},
                }),
            ),
            Draw::Stat => (
                "stat",
                json!({
                    "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": false},
                    "textMode": "value_and_name", "colorMode": "none", "graphMode": "none",
                    "justifyMode": "auto", "orientation": "auto",
                }),
            ),
            Draw::Table => ("table", json!({"showHeader": true})),
        };
        let is_table = matches!(self.draw, Draw::Table);
        json!({
            "type": kind, "id": id, "title": self.title, "description": self.about,
            "datasource": source(),
            "gridPos": {"h": HEIGHT, "w": self.width, "x": x, "y": y},
            "fieldConfig": {"defaults": {"unit": self.unit}, "overrides": []},
            "options": options,
            "targets": [{
                "refId": "A", "datasource": source(), "expr": self.query,
                "legendFormat": self.legend, "instant": is_table, "range": !is_table,
                "format": if is_table { "table" } else { "time_series" },
            }],
        })
    }
}

fn source() -> Value {
    json!({"type": "prometheus", "uid": "${datasource}"})
}

fn dashboard(uid: &str, title: &str, about: &str, more: Vec<Value>, panels: &[Value]) -> Value {
    let source = json!({
        "name": "datasource", "label": "data source", "type": "datasource",
        "query": "prometheus", "hide": 0,
    });
    let variables: Vec<Value> = [source].into_iter().chain(more).collect();
    json!({
        "uid": uid, "title": title, "description": about, "tags": ["sexton"],
        "editable": true, "schemaVersion": 39, "version": 1, "timezone": "browser",
        "refresh": "30s", "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": variables}, "annotations": {"list": []}, "links": [],
        "panels": panels,
    })
}

fn node() -> Value {
    let mut grid = Grid::default();
    let of_node = "{instance=\"$instance\"}";
    grid.add(Panel {
        query: format!("sexton_verdict{of_node} == 1"),
        legend: "{{state}}".into(),
        ..panel("verdict", "what sexton says of the node", Draw::Stat, 4)
    });
    grid.add(Panel {
        query: format!("sexton_finding{of_node}"),
        ..panel(
            "open findings",
            "code, subject, severity and since when",
            Draw::Table,
            12,
        )
    });
    grid.add(Panel {
        query: format!("sexton_forecast_seconds{of_node}"),
        unit: "s",
        ..panel(
            "forecast",
            "time until a limit is passed at the present rate",
            Draw::Table,
            8,
        )
    });
    for area in fact::areas() {
        let panels: Vec<Panel> = of_area(area).collect();
        if !panels.is_empty() {
            grid.add_row(area.title, panels);
        }
    }
    let instance = json!({
        "name": "instance", "label": "node", "type": "query", "hide": 0,
        "datasource": source(), "query": "label_values(sexton_build_info, instance)",
        "refresh": 2, "sort": 1, "multi": false, "includeAll": false,
    });
    let about = "One node: its verdict, its findings, and everything that sexton measures.";
    dashboard(
        "sexton-node",
        "sexton: node",
        about,
        vec![instance],
        &grid.panels,
    )
}

fn of_area(area: &'static Area) -> impl Iterator<Item = Panel> {
    let facts = area.facts.iter();
    facts.filter_map(|fact| Some(of_metric(fact, &fact.metric?)))
}

fn of_metric(fact: &Fact, metric: &Metric) -> Panel {
    let selected = format!("{}{{instance=\"$instance\"}}", metric.name);
    let value = match metric.is_counter {
        true => format!("rate({selected}[5m])"),
        false => selected,
    };
    let query = match metric.labels.is_empty() {
        true => value,
        false => format!("topk({TOP}, {value})"),
    };
    let labels = metric
        .labels
        .iter()
        .map(|label| format!("{{{{{}}}}}", label.name));
    let legend: Vec<String> = labels.collect();
    let name = metric.name.trim_start_matches("sexton_");
    let name = name.strip_suffix("_total").unwrap_or(name);
    let per_second = if metric.is_counter {
        ", per second"
    } else {
        ""
    };
    Panel {
        unit: unit(fact.measure, metric.is_counter),
        query,
        legend: if legend.is_empty() {
            name.replace('_', " ")
        } else {
            legend.join(" ")
        },
        ..panel(
            &format!("{}{per_second}", name.replace('_', " ")),
            fact.help,
            Draw::Lines,
            8,
        )
    }
}

/// Grafana's name of a unit.
fn unit(measure: Measure, is_rate: bool) -> &'static str {
    match (measure, is_rate) {
        (Measure::Bytes, false) => "bytes",
        (Measure::Bytes, true) => "Bps",
        (Measure::Nanoseconds | Measure::Seconds, _) => "s",
        (Measure::Ratio, _) => "percentunit",
        (Measure::Count | Measure::None, _) => "short",
    }
}

fn panel(title: &str, about: &str, draw: Draw, width: usize) -> Panel {
    Panel {
        title: title.to_owned(),
        about: about.to_owned(),
        draw,
        unit: "short",
        query: String::new(),
        legend: String::new(),
        width,
    }
}

/// A panel of the fleet: title, unit, query, legend.
type Row = (&'static str, &'static str, &'static str, &'static str);

const FLEET: [Row; 13] = [
    (
        "dying memory cgroups",
        "short",
        "topk(20, sexton_memcg_dying)",
        "{{instance}}",
    ),
    (
        "dying for each live one",
        "short",
        "topk(20, sexton:memcg_dying:per_live)",
        "{{instance}}",
    ),
    (
        "more dying in 6 hours",
        "short",
        "topk(20, sexton:memcg_dying:delta6h)",
        "{{instance}}",
    ),
    (
        "memory of dying cgroups",
        "percentunit",
        "topk(20, sexton:memcg_dying_bytes:ratio)",
        "{{instance}}",
    ),
    (
        "shortest forecast",
        "s",
        "bottomk(20, sexton_forecast_seconds)",
        "{{instance}} {{what}}: {{limit}}",
    ),
    (
        "automatic restarts of units in an hour",
        "short",
        "topk(20, sum by (instance, unit) (increase(sexton_unit_starts_total{by=\"restart\"}[1h])))",
        "{{instance}} {{unit}}",
    ),
    (
        "containers started in an hour",
        "short",
        "topk(20, sum by (instance, image) (increase(sexton_container_starts_total[1h])))",
        "{{instance}} {{image}}",
    ),
    (
        "system time of the worst core",
        "percentunit",
        "topk(20, sexton_core_worst_system_ratio)",
        "{{instance}}",
    ),
    (
        "longest pending NAPI poll",
        "s",
        "topk(20, sexton_napi_wait_seconds)",
        "{{instance}}",
    ),
    (
        "NIC resets and transmit timeouts in an hour",
        "short",
        "topk(20, sum by (instance) (increase(sexton_nic_resets_total[1h])) \
         or sum by (instance) (increase(sexton_nic_tx_timeouts_total[1h])))",
        "{{instance}}",
    ),
    (
        "one read of memory.stat",
        "s",
        "topk(20, sexton_memcg_stat_read_seconds)",
        "{{instance}}",
    ),
    (
        "CPU time of the agent",
        "percentunit",
        "topk(20, sexton_agent_cpu_ratio)",
        "{{instance}}",
    ),
    (
        "memory of the agent",
        "bytes",
        "topk(20, sexton_agent_memory_bytes)",
        "{{instance}}",
    ),
];

fn fleet() -> Value {
    let mut grid = Grid::default();
    for (title, query, legend) in [
        (
            "nodes by verdict",
            "count by (state) (sexton_verdict == 1)",
            "{{state}}",
        ),
        (
            "agents by version",
            "count by (version) (sexton_build_info)",
            "{{version}}",
        ),
        (
            "sensors that do not see",
            "count by (sensor) (sexton_sensor_up == 0)",
            "{{sensor}}",
        ),
    ] {
        grid.add(Panel {
            query: query.into(),
            legend: legend.into(),
            ..panel(title, "now, over all nodes", Draw::Stat, 8)
        });
    }
    grid.add(Panel {
        query: "count by (code, severity) (sexton_finding{severity!=\"note\"})".into(),
        legend: "{{code}} {{severity}}".into(),
        ..panel(
            "open findings by code",
            "how many nodes and subjects have each",
            Draw::Lines,
            12,
        )
    });
    grid.add(Panel {
        query: "sexton_finding{severity=~\"serious|critical\"}".into(),
        ..panel("grave findings", "findings that hurt now", Draw::Table, 12)
    });
    for (title, unit, query, legend) in FLEET {
        grid.add(Panel {
            unit,
            query: query.into(),
            legend: legend.into(),
            ..panel(title, "the 20 nodes with the worst values", Draw::Lines, 12)
        });
    }
    let about = "All nodes that sexton watches: verdicts, causes, and the worst values.";
    dashboard(
        "sexton-fleet",
        "sexton: fleet",
        about,
        Vec::new(),
        &grid.panels,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_of_the_facts_has_a_panel_and_ids_are_unique() {
        let [(_, node), (_, fleet)] = all();
        let of_node = queries(&node);
        for metric in fact::all().filter_map(|fact| fact.metric) {
            let selected = format!("{}{{", metric.name);
            assert!(
                of_node.iter().any(|it| it.contains(&selected)),
                "{}",
                metric.name
            );
        }
        for dashboard in [node, fleet] {
            let panels = dashboard["panels"].as_array().expect("panels");
            let inner = panels
                .iter()
                .filter_map(|row| row["panels"].as_array())
                .flatten();
            let all: Vec<&Value> = panels.iter().chain(inner).collect();
            let mut ids: Vec<u64> = all.iter().filter_map(|it| it["id"].as_u64()).collect();
            let n = ids.len();
            assert_eq!(n, all.len());
            ids.sort_unstable();
            ids.dedup();
            assert_eq!(ids.len(), n);
        }
    }
}
