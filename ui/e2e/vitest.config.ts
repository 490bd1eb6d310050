import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["e2e/*.e2e.ts"],
    globalSetup: "e2e/server.ts",
    // One browser at a time: machines that run this have two cores.
    fileParallelism: false,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // As every test of a whole machine; vitest says which ones needed it.
    retry: 1,
  },
});
