// Starts `sexton fleet serve` on an invented fleet, once for all tests.
//
// SEXTON_FLEET        the program; target/debug/sexton-fleet if not given. It must hold the page
//                     (`cargo xtask page`, then build).
// SEXTON_FLEET_NODES  how many nodes the fleet has.

import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { TestProject } from "vitest/node";
import { addressOf } from "../server";

declare module "vitest" {
  interface ProvidedContext {
    fleet: string;
    nodes: number;
  }
}

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
/** The invented fleet is of the day before. */
const NOW = "2026-11-20T00:00:00Z";

export default async function setup(project: TestProject): Promise<() => void> {
  const program = process.env.SEXTON_FLEET ?? `${ROOT}target/debug/sexton-fleet`;
  if (!existsSync(program)) throw new Error(`${program} is not there; see e2e/fleet/server.ts`);
  const nodes = process.env.SEXTON_FLEET_NODES ?? "2000";
  const lake = mkdtempSync(join(tmpdir(), "sexton-fleet-e2e-"));
  execFileSync(program, ["simulate", "--nodes", nodes, "--hours", "24", "--incident", "founding", "-o", lake]);
  const server = spawn(
    program,
    ["serve", "--lake", lake, "--listen", "127.0.0.1:0", "--node-page", "http://{node}:8642/", "--now", NOW],
    { stdio: ["ignore", "pipe", "pipe"] },
  );
  project.provide("fleet", await addressOf(server));
  project.provide("nodes", Number(nodes));
  return () => {
    server.kill("SIGINT");
    rmSync(lake, { recursive: true });
  };
}
