import { fileURLToPath } from "node:url";
import { defineConfig, mergeConfig } from "vite";
import node from "./vite.config.ts";

// The fleet page, into a folder of its own beside the page of a node: files of the same names.
export default mergeConfig(
  node,
  defineConfig({
    root: fileURLToPath(new URL("fleet", import.meta.url)),
    build: { outDir: "../dist/fleet", emptyOutDir: true },
  }),
);
