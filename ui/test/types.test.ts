import { expect, test } from "vitest";

import { typesOf } from "../dev/types.mjs";

function check(schema: unknown, type: string): void {
  const text = typesOf({ components: { schemas: { X: schema } } });
  expect(text.split("export type X = ")[1]).toBe(`${type};\n`);
}

test("each kind of schema has its type", () => {
  check({ type: "integer", minimum: 0 }, "number");
  check({ type: ["string", "null"] }, "string | null");
  check({ anyOf: [{ $ref: "#/components/schemas/Y" }, { type: "null" }] }, "Y | null");
  check({ enum: ["a", "b"] }, '"a" | "b"');
  check({ oneOf: [{ const: "a", type: "string" }, { enum: ["b"] }] }, '"a" | "b"');
  check({ type: "array", items: { type: ["number", "null"] } }, "(number | null)[]");
  check({ type: "array", prefixItems: [{ type: "number" }, { type: "string" }] }, "[number, string]");
  check({ type: "object", additionalProperties: { type: "boolean" } }, "Record<string, boolean>");
  check(
    { type: "object", required: ["a"], properties: { a: { type: "null" }, "b-c": { type: "string" } } },
    '{\n  a: null;\n  "b-c"?: string;\n}',
  );
});

test("what is said of a schema is kept, and cannot end the comment", () => {
  const text = typesOf({ components: { schemas: { X: { type: "string", description: "one */\ntwo" } } } });
  expect(text).toContain("/** one * / two */\nexport type X = string;\n");
});

test("what is not understood is refused", () => {
  expect(() => check({}, "")).toThrow("no type");
  expect(() => check({ type: "array" }, "")).toThrow();
});
