// Writes src/api/types.ts from the OpenAPI document, which is made from the server's own types.
// What it does not understand it refuses: a type that is wrong is worse than none.

import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const DOCUMENT = new URL("../../crates/sexton-web/openapi.json", import.meta.url);
const TYPES = new URL("../src/api/types.ts", import.meta.url);

const HEAD = "// Made from crates/sexton-web/openapi.json by dev/types.mjs: edit neither.\n";

/** The text of a module that exports one type for each schema of a document. */
export function typesOf(document) {
  const schemas = Object.entries(document.components.schemas);
  const types = schemas.map(([name, schema]) => `${comment(schema, "")}export type ${name} = ${typeOf(schema, "")};\n`);
  return [HEAD, ...types].join("\n");
}

function typeOf(schema, indent) {
  if (schema.$ref) return schema.$ref.slice("#/components/schemas/".length);
  if ("const" in schema) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  const either = schema.anyOf ?? schema.oneOf;
  if (either) return either.map((one) => typeOf(one, indent)).join(" | ");
  if (Array.isArray(schema.type)) {
    return schema.type.map((type) => typeOf({ ...schema, type }, indent)).join(" | ");
  }
  switch (schema.type) {
    case "integer":
    case "number":
      return "number";
    case "string":
    case "boolean":
    case "null":
      return schema.type;
    case "array":
      return listOf(schema, indent);
    case "object":
      return objectOf(schema, indent);
  }
  throw new Error(`no type for ${JSON.stringify(schema)}`);
}

function listOf(schema, indent) {
  if (schema.prefixItems) {
    return `[${schema.prefixItems.map((item) => typeOf(item, indent)).join(", ")}]`;
  }
  const item = typeOf(schema.items, indent);
  return item.includes(" | ") ? `(${item})[]` : `${item}[]`;
}

function objectOf(schema, indent) {
  if (!schema.properties) return `Record<string, ${typeOf(schema.additionalProperties, indent)}>`;
  const inner = `${indent}  `;
  const required = new Set(schema.required);
  const fields = Object.entries(schema.properties).map(([name, field]) => {
    const key = /^\w+$/.test(name) ? name : JSON.stringify(name);
    const mark = required.has(name) ? "" : "?";
    return `${comment(field, inner)}${inner}${key}${mark}: ${typeOf(field, inner)};\n`;
  });
  return `{\n${fields.join("")}${indent}}`;
}

function comment(schema, indent) {
  const said = schema.description?.replaceAll("*/", "* /").replaceAll(/\s+/g, " ");
  return said ? `${indent}/** ${said} */\n` : "";
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeFileSync(TYPES, typesOf(JSON.parse(readFileSync(DOCUMENT, "utf8"))));
}
