import { defineConfig, mergeConfig } from "vitest/config";
import node from "../vitest.config.ts";

const merged = mergeConfig(node, defineConfig({}));

export default { ...merged, test: { ...merged.test, include: ["e2e/fleet/*.e2e.ts"], globalSetup: "e2e/fleet/server.ts" } };
