//! The OpenAPI document, `openapi.json`, made from the types that are answered and the bounds
//! that are checked. It is kept beside the code so that a change of the interface is seen in
//! its review; `UPDATE_SNAPSHOTS=1 cargo test -p sexton-web openapi` writes it anew.

use std::path::Path;

use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};

use super::{Time, diagnosis, export, flame, heatmap, lanes, sources, tiles, upload, zombies};
use crate::agent::AgentView;
use crate::http::Problem;

/// What any question may be answered with.
const ANY: [(u16, &str); 5] = [
    (400, "a parameter makes no sense; the detail names it"),
    (401, "a token is needed, or this one is wrong"),
    (
        403,
        "asked for by another site, or under a name that is not this server's",
    ),
    (
        431,
        "the request's head is too large: ask for fewer lanes at once",
    ),
    (503, "too much is asked at once: try again"),
];

const NO_SOURCE: (u16, &str) = (404, "no such source");

/// Makes the parts of a document, and keeps the schemas that they name.
struct Maker(SchemaGenerator);

impl Maker {
    fn new() -> Self {
        // What is not described is not answered: a client can rely on the names, and a test
        // finds what was forgotten here.
        let closed = RecursiveTransform(|schema: &mut Schema| {
            if schema.get("properties").is_some() {
                schema.insert("additionalProperties".to_owned(), false.into());
            }
        });
        let settings = SchemaSettings::draft2020_12().for_serialize();
        let settings = settings.with_transform(closed).with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
        });
        Self(settings.into_generator())
    }

    fn schema<T: JsonSchema>(&mut self) -> Value {
        self.0.subschema_for::<T>().into()
    }

    fn content<T: JsonSchema>(&mut self, kind: &str) -> Value {
        json!({ kind: { "schema": self.schema::<T>() } })
    }

    fn json<T: JsonSchema>(&mut self) -> Value {
        self.content::<T>("application/json")
    }

    /// One question, how it is answered, and how it is refused beside what is usual.
    fn get(
        &mut self,
        (id, summary): (&str, &str),
        parameters: Vec<Value>,
        content: Value,
        refused: &[(u16, &str)],
    ) -> Value {
        let responses = self.responses((200, "the answer"), content, refused);
        json!({ "get": {
            "operationId": id, "summary": summary, "parameters": parameters, "responses": responses,
        }})
    }

    fn responses(
        &mut self,
        (status, about): (u16, &str),
        content: Value,
        refused: &[(u16, &str)],
    ) -> Value {
        let mut responses = json!({});
        for (status, about) in ANY.iter().chain(refused) {
            let content = self.content::<Problem>("application/problem+json");
            responses[status.to_string()] = json!({ "description": about, "content": content });
        }
        responses[status.to_string()] = json!({ "description": about, "content": content });
        responses
    }

    fn time(&mut self, name: &str, about: &str) -> Value {
        query(name, self.schema::<Time>(), about)
    }

    /// The source and the window that are asked about.
    fn window(&mut self) -> Vec<Value> {
        let from = "the window's beginning; the source's if left out";
        let to = "the window's end, which is not in it; the source's if left out";
        vec![source(), self.time("from", from), self.time("to", to)]
    }

    fn sources(&mut self) -> Value {
        let of = ("sources", "What there is to look at");
        let content = self.json::<sources::SourcesView>();
        let mut path = self.get(of, Vec::new(), content, &[]);
        let content = self.json::<sources::SourceView>();
        let refused = [
            (408, "it comes too slowly"),
            (411, "the length is not told"),
            (413, "it is larger than this server takes"),
            (415, "send it as application/octet-stream"),
            (422, "it is none of these, or damaged"),
            (507, "there is no room for it"),
        ];
        path["post"] = json!({
            "operationId": "open",
            "summary": "Open a file: perf.data, perf script text, folded stacks (each also with \
                        gzip), or a packed bundle",
            "description": "The file is looked at, not kept: it is gone when the server ends, and \
                            the eighth drops the first.",
            "parameters": [query("name", text(upload::MAX_NAME_CHARS), "what to call it")],
            "requestBody": { "required": true, "content": { "application/octet-stream": {
                "schema": { "type": "string", "format": "binary", "minLength": 1 },
            }}},
            "responses": self.responses((201, "it is open"), content, &refused),
        });
        path
    }

    fn tiles(&mut self) -> Value {
        let mut parameters = self.window();
        let lane = list(text(tiles::MAX_LANE_CHARS), tiles::MAX_LANES);
        let mut lane = query("lane", lane, "ids of lanes, each given as lane=");
        lane["required"] = true.into();
        lane["schema"]["minItems"] = 1.into();
        let width = number(1, tiles::MAX_WIDTH, Some(tiles::DEFAULT_WIDTH));
        parameters.extend([lane, query("width", width, "columns at most")]);
        let of = (
            "tiles",
            "Lanes over a window, put together to at most a number of columns",
        );
        let refused = [
            NO_SOURCE,
            (422, "the window is empty, or there is no such lane"),
        ];
        let content = self.json::<tiles::TilesView<'_>>();
        self.get(of, parameters, content, &refused)
    }

    fn heatmap(&mut self) -> Value {
        let mut parameters = self.window();
        let view = usual(self.schema::<heatmap::View>(), "offset");
        let by = usual(self.schema::<heatmap::Part>(), "all");
        let rows = number(1, heatmap::MAX_ROWS, Some(heatmap::USUAL_ROWS));
        let columns = number(1, heatmap::MAX_COLUMNS, Some(heatmap::DEFAULT_COLUMNS));
        let value = "only this part: one of `parts`; for functions a regular expression";
        parameters.extend([
            query(
                "view",
                view,
                "offsets into the second, columns of time cut into rows, or a row for each thread",
            ),
            query("by", by, "what `parts` lists"),
            query("value", text(heatmap::MAX_VALUE_CHARS), value),
            query("rows", rows, "rows"),
            query("columns", columns, "columns at most"),
        ]);
        let refused = [
            NO_SOURCE,
            (
                422,
                "the window is empty, there are no times, or the expression makes no sense",
            ),
        ];
        let content = self.json::<heatmap::HeatMapView>();
        self.get(
            ("heatmap", "When cores were busy"),
            parameters,
            content,
            &refused,
        )
    }

    fn pprof(&mut self) -> Value {
        let of = (
            "pprof",
            "The samples of a window as pprof, for other viewers",
        );
        let refused = [
            NO_SOURCE,
            (413, "the file would be too large"),
            (422, "the window is empty, or the expression makes no sense"),
        ];
        let file = json!({ "application/octet-stream": { "schema": { "type": "string" } } });
        let parameters = self.samples();
        self.get(of, parameters, file, &refused)
    }

    /// Which samples.
    fn samples(&mut self) -> Vec<Value> {
        let mut parameters = self.window();
        let cpus = list(number(0, flame::MAX_CPU, None), flame::MAX_LIST);
        let pids = list(number(0, flame::MAX_PID, None), flame::MAX_LIST);
        let comms = list(text(flame::MAX_COMM_CHARS), flame::MAX_LIST);
        let function = "only stacks with a function that this regular expression matches";
        parameters.extend([
            query("cpu", cpus, "only these cores"),
            query("comm", comms, "only threads of these names"),
            query("pid", pids.clone(), "only these processes"),
            query("tid", pids, "only these threads"),
            query(
                "unit",
                text(flame::MAX_TEXT_CHARS),
                "only this systemd unit",
            ),
            query(
                "container",
                text(flame::MAX_TEXT_CHARS),
                "only the container with this id, or whose id begins so",
            ),
            query(
                "pod",
                text(flame::MAX_TEXT_CHARS),
                "only the pod with this uid, or whose uid begins so",
            ),
            query("function", text(flame::MAX_TEXT_CHARS), function),
            query(
                "event",
                text(flame::MAX_TEXT_CHARS),
                "this event, such as off-cpu; the first of the recording if it is not given",
            ),
        ]);
        parameters
    }

    fn flame(&mut self) -> Value {
        let nodes = number(1, flame::MAX_NODES, Some(flame::DEFAULT_NODES));
        let mut parameters = self.samples();
        parameters.extend([
            self.time("base_from", "the window to compare with; give both ends"),
            self.time("base_to", "its end"),
            query("nodes", nodes, "nodes at most; the lightest are left out"),
        ]);
        let refused = [
            NO_SOURCE,
            (422, "the window is empty, or the expression makes no sense"),
        ];
        let content = self.json::<flame::FlameView>();
        self.get(
            ("flame", "Where the time went"),
            parameters,
            content,
            &refused,
        )
    }

    fn export(&mut self) -> Value {
        // What is in the file is described as well: the page reads it there.
        let data = self.schema::<export::ExportedView<'_>>();
        let of = (
            "export",
            "The page and its data as one file that needs no server",
        );
        let refused = [
            (
                404,
                "no such source, or this sexton was built without its page",
            ),
            (422, "the window is empty"),
        ];
        let file = json!({ "text/html": { "schema": { "type": "string" } } });
        let parameters = self.window();
        let mut path = self.get(of, parameters, file, &refused);
        let data = data["$ref"].as_str().unwrap_or_default();
        path["get"]["description"] =
            format!("Its element `sexton-data` holds JSON: `{data}`.").into();
        path
    }

    fn paths(&mut self) -> Value {
        let of_source =
            |maker: &mut Self, of, content| maker.get(of, vec![source()], content, &[NO_SOURCE]);
        let view = self.json::<sources::SourceView>();
        let one = of_source(self, ("source", "One source"), view);
        let view = self.json::<diagnosis::DiagnosisView<'_>>();
        let diagnosis = ("diagnosis", "The verdict, the chain and its evidence");
        let diagnosis = of_source(self, diagnosis, view);
        let view = self.json::<lanes::LanesView>();
        let lanes = of_source(self, ("lanes", "What the time line can show"), view);
        let view = self.json::<zombies::ZombiesView>();
        let zombies = "Dying memory cgroups: who made them, what pins them, how they grow";
        let zombies = of_source(self, ("zombies", zombies), view);
        let view = self.json::<AgentView>();
        let agent = "The ring of the agent, its incidents, and what it found when";
        let refused = [(404, "no agent records what is looked at")];
        let agent = self.get(("agent", agent), Vec::new(), view, &refused);
        let document = json!({ "application/json": { "schema": { "type": "object" } } });
        json!({
            "/api/v1/agent": agent,
            "/api/v1/sources": self.sources(),
            "/api/v1/sources/{id}": one,
            "/api/v1/sources/{id}/diagnosis": diagnosis,
            "/api/v1/sources/{id}/lanes": lanes,
            "/api/v1/sources/{id}/tiles": self.tiles(),
            "/api/v1/sources/{id}/heatmap": self.heatmap(),
            "/api/v1/sources/{id}/flame": self.flame(),
            "/api/v1/sources/{id}/zombies": zombies,
            "/api/v1/sources/{id}/profile.pb.gz": self.pprof(),
            "/api/v1/sources/{id}/export.html": self.export(),
            "/openapi.json": self.get(("openapi", "This document"), Vec::new(), document, &[]),
        })
    }

    fn document(mut self) -> Value {
        let paths = self.paths();
        json!({
            "openapi": "3.1.0",
            "info": {
                "title": "sexton serve",
                "version": "1",
                "description": "What `sexton serve` answers. Times are integer microseconds since \
                    the epoch. Everything but `POST /api/v1/sources` only reads. Errors are \
                    problem documents (RFC 9457). See docs/http.md.",
                "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
            },
            "servers": [{ "url": "/" }],
            "security": [{}, { "bearer": [] }, { "cookie": [] }],
            "paths": paths,
            "components": {
                "schemas": self.0.take_definitions(true),
                "parameters": { "source": {
                    "name": "id", "in": "path", "required": true,
                    "schema": { "type": "string", "pattern": "^[a-z0-9]{1,32}$" },
                }},
                "securitySchemes": {
                    "bearer": {
                        "type": "http", "scheme": "bearer",
                        "description": "`--token`; needed when one is set, and always off loopback",
                    },
                    "cookie": {
                        "type": "apiKey", "in": "cookie", "name": "sexton_token",
                        "description": "set by `GET /?token=…`",
                    },
                },
            },
        })
    }
}

fn source() -> Value {
    json!({ "$ref": "#/components/parameters/source" })
}

fn query(name: &str, schema: Value, about: &str) -> Value {
    let mut query = json!({
        "name": name, "in": "query", "required": false, "schema": schema, "description": about,
    });
    if query["schema"]["type"] == "array" {
        query["style"] = "form".into();
        query["explode"] = true.into();
    }
    query
}

fn text(most: usize) -> Value {
    json!({ "type": "string", "minLength": 1, "maxLength": most })
}

fn number<T: serde::Serialize>(least: u8, most: T, usually: Option<T>) -> Value {
    let mut schema = json!({ "type": "integer", "minimum": least, "maximum": most });
    if let Some(usually) = usually {
        schema["default"] = json!(usually);
    }
    schema
}

fn list(of: Value, most: usize) -> Value {
    json!({ "type": "array", "items": of, "maxItems": most })
}

fn usual(mut schema: Value, usually: &str) -> Value {
    schema["default"] = usually.into();
    schema
}

#[test]
fn the_document_is_that_of_the_types() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("openapi.json");
    let made = Maker::new().document();
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        let text = serde_json::to_string_pretty(&made).expect("JSON") + "\n";
        std::fs::write(&file, text).expect("the tree can be written");
    }
    let kept = std::fs::read_to_string(&file).expect("it is kept");
    let kept: Value = serde_json::from_str(&kept).expect("JSON");
    assert!(
        kept == made,
        "openapi.json is not what the types say: look at what \
         `UPDATE_SNAPSHOTS=1 cargo test -p sexton-web openapi` changes in it"
    );
}
