import { defineConfig, type Plugin } from "vite";
import { EmbeddedClient } from "../src/api/embedded/client";
import type { Client } from "../src/api/client";
import type { HeatBy, HeatView, Range } from "../src/api/types";
import { exported, FROM, TO } from "./node";

/** Answers as `sexton serve` would, about a node that is made up. */
function madeUp(): Plugin {
  const client = new EmbeddedClient(exported());
  return {
    name: "made-up-node",
    configureServer(server) {
      server.middlewares.use("/api/v1/", (request, response) => {
        const asked = new URL(request.url ?? "/", "http://localhost");
        answer(client, asked).then(
          (body) => response.setHeader("Content-Type", "application/json").end(JSON.stringify(body)),
          (error: Error) =>
            response.writeHead(422).end(JSON.stringify({ status: 422, title: "no", detail: error.message })),
        );
      });
    },
  };
}

async function answer(client: Client, asked: URL): Promise<unknown> {
  const query = asked.searchParams;
  const [, id, what] = /^\/sources(?:\/(\w+)\/(\w+))?$/.exec(asked.pathname) ?? [];
  const number = (name: string, otherwise: number) => Number(query.get(name) ?? otherwise);
  const range: Range = [number("from", FROM), number("to", TO)];
  const value = query.get("value") ?? "";
  switch (what) {
    case undefined:
      return client.sources();
    case "diagnosis":
      return client.diagnosis(id);
    case "lanes":
      return client.lanes(id);
    case "zombies":
      return client.zombies(id);
    case "tiles":
      return client.tiles(id, query.getAll("lane"), range, number("width", 1000));
    case "heatmap":
      return client.heatmap(id, {
        range,
        rows: number("rows", 50),
        columns: number("columns", 1200),
        view: (query.get("view") ?? "offset") as HeatView,
        facet: { by: (query.get("by") ?? "all") as HeatBy, value },
      });
    case "flame":
      return client.flame(id, {
        range,
        base: query.has("base_from") ? [number("base_from", 0), number("base_to", 0)] : null,
        facet: facetOf(query),
      });
    default:
      throw new Error(`nothing answers ${asked.pathname}`);
  }
}

function facetOf(query: URLSearchParams): { by: HeatBy; value: string } {
  const names: [string, HeatBy][] = [
    ["cpu", "core"],
    ["comm", "process"],
    ["unit", "unit"],
    ["function", "function"],
  ];
  const found = names.find(([name]) => query.has(name));
  return found ? { by: found[1], value: query.get(found[0]) ?? "" } : { by: "all", value: "" };
}

// With SEXTON_SERVER=http://127.0.0.1:8642 a real server answers instead.
const real = process.env.SEXTON_SERVER;

export default defineConfig({
  root: new URL("..", import.meta.url).pathname,
  plugins: real ? [] : [madeUp()],
  server: real ? { proxy: { "/api": { target: real, changeOrigin: true } } } : {},
});
