// Starts `sexton serve` on a recording of the drill, once for all tests.
//
// SEXTON         the program; target/debug/sexton if not given. It must hold the page
//                (`cargo xtask page`, then build).
// SEXTON_BUNDLE  the recording, a folder; the one in fixtures/ if not given.
// SEXTON_URL     a server that runs already, which is asked instead of a new one.

import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { TestProject } from "vitest/node";

declare module "vitest" {
  interface ProvidedContext {
    address: string;
    /** The same recording as one file. */
    packed: string;
  }
}

export const ROOT = fileURLToPath(new URL("../..", import.meta.url));
export const PROGRAM = process.env.SEXTON ?? `${ROOT}target/debug/sexton`;

/** A server of its own, on what its arguments name. */
export async function serve(...args: string[]): Promise<{ address: string; stop(): Promise<void> }> {
  const server = spawn(PROGRAM, [...args, "--listen", "127.0.0.1:0"], { stdio: ["ignore", "pipe", "pipe"] });
  const ended = new Promise<void>((resolve) => server.once("exit", () => resolve()));
  const stop = () => {
    server.kill("SIGINT");
    return ended;
  };
  return { address: await addressOf(server), stop };
}

/** What a command of sexton prints. Findings make its exit code 1. */
export function output(...args: string[]): string {
  const { status, stdout, stderr } = spawnSync(PROGRAM, args, { encoding: "utf8", maxBuffer: 64 << 20 });
  if (status === null || status === 2) throw new Error(`sexton ${args.join(" ")}: ${stderr}`);
  return stdout;
}

export default async function setup(project: TestProject): Promise<() => void> {
  const program = PROGRAM;
  const folder = mkdtempSync(join(tmpdir(), "sexton-e2e-"));
  const bundle = process.env.SEXTON_BUNDLE ?? unpacked(join(folder, "drill"));
  for (const path of [program, bundle]) {
    if (!existsSync(path)) throw new Error(`${path} is not there; see e2e/server.ts`);
  }
  const packed = join(folder, "drill.tar.zst");
  execFileSync(program, ["bundle", "pack", bundle, "-o", packed]);
  project.provide("packed", packed);
  if (process.env.SEXTON_URL) {
    project.provide("address", process.env.SEXTON_URL);
    return () => rmSync(folder, { recursive: true });
  }
  const server = spawn(program, ["serve", bundle, "--listen", "127.0.0.1:0"], { stdio: ["ignore", "pipe", "pipe"] });
  project.provide("address", await addressOf(server));
  return () => {
    server.kill("SIGINT");
    rmSync(folder, { recursive: true });
  };
}

function unpacked(folder: string): string {
  mkdirSync(folder);
  execFileSync("tar", ["-xzf", `${ROOT}fixtures/6.18-debian12/drill/recording.tar.gz`, "-C", folder]);
  return folder;
}

export function addressOf(server: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let said = "";
    const read = (bytes: Buffer) => {
      said += bytes;
      if (said.includes("There is no page")) reject(new Error(said));
      const address = /Open (http:\/\/\S+)/.exec(said)?.[1];
      if (address) resolve(address);
    };
    server.stdout?.on("data", read);
    server.stderr?.on("data", read);
    server.on("exit", (code) => reject(new Error(`sexton serve ended with ${code}: ${said}`)));
  });
}
