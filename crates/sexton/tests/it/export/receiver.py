"""A receiver of OTLP, Pyroscope and Parca that takes nothing but what the real ones take.

OTLP is decoded by the library of OpenTelemetry. For the others the checks are those of
pyroscope/pkg/validation and parca/pkg/normalizer, with their default limits. Prints its port, then a
line of JSON for each request. The first argument is the time, in seconds since 1970; a second one is the
port.
"""

import base64
import gzip
import json
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, unknown_fields
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2 as logs
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as metrics
from opentelemetry.proto.collector.profiles.v1development import profiles_service_pb2 as profiles

NOW = float(sys.argv[1])
I64, U64, BOOL, STR, BYTES = 3, 4, 8, 9, 12


def definitions():
    file = descriptor_pb2.FileDescriptorProto(name="r.proto", package="r", syntax="proto3")

    def message(name, *fields):
        m = file.message_type.add(name=name)
        for number, field, kind, repeated in fields:
            f = m.field.add(name=field, number=number, label=3 if repeated else 1)
            if isinstance(kind, str):
                f.type, f.type_name = 11, ".r." + kind
            else:
                f.type = kind

    message("ValueType", (1, "type", I64, 0), (2, "unit", I64, 0))
    message("Label", (1, "key", I64, 0), (2, "str", I64, 0), (3, "num", I64, 0))
    message("Sample", (1, "location_id", U64, 1), (2, "value", I64, 1), (3, "label", "Label", 1))
    message("Mapping", (1, "id", U64, 0), (5, "filename", I64, 0), (7, "has_functions", BOOL, 0))
    message("Line", (1, "function_id", U64, 0))
    message("Location", (1, "id", U64, 0), (2, "mapping_id", U64, 0), (3, "address", U64, 0), (4, "line", "Line", 1))
    message("Function", (1, "id", U64, 0), (2, "name", I64, 0), (3, "system_name", I64, 0), (4, "filename", I64, 0))
    message("Profile", (1, "sample_type", "ValueType", 1), (2, "sample", "Sample", 1), (3, "mapping", "Mapping", 1),
            (4, "location", "Location", 1), (5, "function", "Function", 1), (6, "string_table", STR, 1),
            (9, "time_nanos", I64, 0), (10, "duration_nanos", I64, 0), (11, "period_type", "ValueType", 0),
            (12, "period", I64, 0))
    message("LabelPair", (1, "name", STR, 0), (2, "value", STR, 0))
    message("RawSample", (1, "raw_profile", BYTES, 0), (2, "ID", STR, 0))
    message("Series", (1, "labels", "LabelPair", 1), (2, "samples", "RawSample", 1))
    message("PushRequest", (1, "series", "Series", 1))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return lambda name: message_factory.GetMessageClass(pool.FindMessageTypeByName("r." + name))


DEFINED = definitions()


class Refused(Exception):
    def __init__(self, status, why):
        super().__init__(why)
        self.status = status


def need(condition, why, status=400):
    if not condition:
        raise Refused(status, why)


def parsed(kind, body):
    message = kind()
    message.ParseFromString(body)
    known_only(message)
    return message


def known_only(message):
    need(len(unknown_fields.UnknownFieldSet(message)) == 0, f"unknown fields in {message.DESCRIPTOR.name}")
    for field, value in message.ListFields():
        if field.message_type is not None:
            items = value if field.is_repeated else [value]
            for item in items:
                known_only(item)


def number(point):
    need(point.WhichOneof("value") == "as_double", "a point without a value")
    return point.as_double


def take_metrics(body):
    found = {}
    for resource in parsed(metrics.ExportMetricsServiceRequest, body).resource_metrics:
        attributes = {a.key: a.value.string_value for a in resource.resource.attributes}
        need(attributes.get("host.name") and attributes.get("service.name"), "no host.name or service.name")
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                kind = metric.WhichOneof("data")
                need(kind in ("gauge", "sum"), "neither gauge nor sum")
                points = getattr(metric, kind).data_points
                need(points, f"{metric.name} has no points")
                for point in points:
                    need(abs(point.time_unix_nano / 1e9 - NOW) < 3600, "a time of another day")
                    if kind == "sum":
                        need(metric.sum.aggregation_temporality == 2 and metric.sum.is_monotonic, "no cumulative sum")
                        need(0 < point.start_time_unix_nano < point.time_unix_nano, "a sum without a start")
                    number(point)
                need(metric.name not in found, f"{metric.name} twice")
                found[metric.name] = {"kind": kind, "points": len(points), "time": points[0].time_unix_nano}
    return {"metrics": found}


def take_logs(body):
    lines = []
    for resource in parsed(logs.ExportLogsServiceRequest, body).resource_logs:
        for scope in resource.scope_logs:
            for line in scope.log_records:
                need(1 <= line.severity_number <= 24, "no severity")
                attributes = {a.key: a.value.string_value for a in line.attributes}
                lines.append({"severity": line.severity_number, "body": line.body.string_value,
                              "time": line.time_unix_nano, **attributes})
    return {"lines": lines}


def take_profiles(body):
    request = parsed(profiles.ExportProfilesServiceRequest, body)
    tables = request.dictionary
    for name in ("mapping_table", "location_table", "function_table", "link_table", "string_table",
                 "attribute_table", "stack_table"):
        table = getattr(tables, name)
        need(len(table) > 0, f"{name} is empty")
        zero = table[0] if name == "string_table" else table[0].SerializeToString()
        need(len(zero) == 0, f"the first entry of {name} is not the zero value")
        entries = list(table) if name == "string_table" else [entry.SerializeToString() for entry in table]
        need(len(set(entries)) == len(entries), f"an entry of {name} is there twice")
    found = []
    for resource in request.resource_profiles:
        attributes = {a.key: a.value.string_value for a in resource.resource.attributes}
        for scope in resource.scope_profiles:
            for profile in scope.profiles:
                need(len(profile.profile_id) == 16, "no id")
                need(profile.duration_nano > 0 and profile.time_unix_nano > 0, "no time")
                stacks = {}
                for sample in profile.samples:
                    need(0 <= sample.stack_index < len(tables.stack_table), "no such stack")
                    names = []
                    for location in tables.stack_table[sample.stack_index].location_indices:
                        need(0 < location < len(tables.location_table), "no such location")
                        location = tables.location_table[location]
                        need(0 <= location.mapping_index < len(tables.mapping_table), "no such mapping")
                        function = tables.function_table[location.lines[0].function_index]
                        names.append(tables.string_table[function.name_strindex])
                    need(len(sample.values) == 1, "values")
                    stacks[";".join(reversed(names))] = sample.values[0]
                kind = [tables.string_table[profile.sample_type.type_strindex],
                        tables.string_table[profile.sample_type.unit_strindex]]
                found.append({"labels": attributes, "kind": kind, "time": profile.time_unix_nano, "stacks": stacks})
    return {"profiles": found}


def take_pprof(raw, max_depth):
    need(raw[:2] == b"\x1f\x8b", "no gzip")
    plain = gzip.decompress(raw)
    need(len(plain) <= 4 << 20, "a profile of more than 4 MiB")
    profile = parsed(DEFINED("Profile"), plain)
    text = profile.string_table
    need(len(text) > 0 and text[0] == "", "the first string is not empty")
    need(len(profile.sample) <= 16_000, "more than 16,000 samples")
    for table in (profile.mapping, profile.function, profile.location):
        for n, entry in enumerate(table):
            need(entry.id == n + 1, "ids are not sequential")
    need(NOW - 3600 < profile.time_nanos / 1e9 < NOW + 600, "out of the ingestion window")
    kinds = [[text[t.type], text[t.unit]] for t in profile.sample_type]
    need(kinds and all("-" not in kind for kind, _ in kinds), "a sample type with a dash")
    stacks = {}
    for sample in profile.sample:
        need(len(sample.value) == len(kinds), "values and types differ in number")
        need(len(sample.location_id) <= max_depth, "a stack that is too deep")
        names = []
        for location in sample.location_id:
            need(1 <= location <= len(profile.location), "no such location")
            location = profile.location[location - 1]
            need(location.mapping_id <= len(profile.mapping), "no such mapping")
            function = profile.function[location.line[0].function_id - 1]
            names.append(text[function.name])
        stacks[";".join(reversed(names))] = sample.value[1]
    return {"kind": kinds[1], "time": profile.time_nanos, "stacks": stacks}


def take_series(labels, raw, max_depth):
    need(len(labels) <= 30, "more than 30 labels")
    names = [name for name, _ in labels]
    need(len(set(names)) == len(names), "a label twice")
    for name, value in labels:
        need(0 < len(name) <= 1024 and len(value.encode()) <= 2048, "a label that is too long")
        need(name.replace("_", "a").isalnum() and name.isascii(), f"{name} is no name of a label")
    labels = dict(labels)
    need("__name__" in labels and labels.get("service_name"), "no __name__ or service_name")
    return {"labels": labels, **take_pprof(raw, max_depth)}


def take_pyroscope(body):
    request = parsed(DEFINED("PushRequest"), body)
    need(request.series, "no profiles")
    found = []
    for series in request.series:
        for sample in series.samples:
            labels = [(label.name, label.value) for label in series.labels]
            found.append(take_series(labels, sample.raw_profile, 1000))
    return {"profiles": found}


def take_parca(body):
    need(len(body) <= 64 << 20, "more than 64 MiB", 413)
    request = json.loads(body)
    need(set(request) <= {"series", "normalized"}, "unknown keys")
    found = []
    for series in request["series"]:
        labels = [(label["name"], label["value"]) for label in series["labels"]["labels"]]
        for sample in series["samples"]:
            raw = base64.b64decode(sample["rawProfile"], validate=True)
            found.append(take_series(labels, raw, 10_000))
    return {"profiles": found}


OTLP = "application/x-protobuf"
PATHS = {
    "/v1/metrics": (OTLP, take_metrics),
    "/v1/logs": (OTLP, take_logs),
    "/v1development/profiles": (OTLP, take_profiles),
    "/push.v1.PusherService/Push": ("application/proto", take_pyroscope),
    "/api/profiles/writeraw": ("application/json", take_parca),
}


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        status, said = 200, {}
        try:
            need(self.path in PATHS, "no such path", 404)
            kind, take = PATHS[self.path]
            need(self.headers["content-type"] == kind, "another content type", 415)
            need(self.headers.get("authorization") == "Bearer open-sesame", "who are you", 401)
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            elif kind == OTLP:
                need(False, "not packed")
            said = take(body)
        except Refused as error:
            status, said = error.status, {"error": str(error)}
        except Exception as error:  # A body that cannot be read is the sender's fault.
            status, said = 400, {"error": repr(error)}
        print(json.dumps({"path": self.path, "status": status, **said}), flush=True)
        answer = b"" if status == 200 else said["error"].encode()
        self.send_response(status)
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", int(sys.argv[2]) if len(sys.argv) > 2 else 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
